# SPDX-License-Identifier: Apache-2.0
# Cross-compile to 64-bit ARM with Debian's gcc-aarch64-linux-gnu; programs run under qemu-user.
# tools/arm64-sysroot unpacks the libraries we link into a folder that nothing else uses.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)

set(AEGIS_ARM64_SYSROOT "${CMAKE_CURRENT_LIST_DIR}/../build-arm64-sysroot" CACHE PATH "unpacked arm64 libraries")
# try_compile reads this file again, in the same process and so with the same environment.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES AEGIS_ARM64_SYSROOT)
get_filename_component(sysroot "${AEGIS_ARM64_SYSROOT}" ABSOLUTE)
set(CMAKE_FIND_ROOT_PATH "${sysroot}" /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} "${sysroot}/usr/lib/aarch64-linux-gnu/pkgconfig:${sysroot}/usr/share/pkgconfig")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${sysroot}")
# Libraries of libraries (libedit -> libtinfo) are found at link time and at run time.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath-link,${sysroot}/usr/lib/aarch64-linux-gnu:${sysroot}/lib/aarch64-linux-gnu -Wl,-rpath,${sysroot}/usr/lib/aarch64-linux-gnu:${sysroot}/lib/aarch64-linux-gnu -Wl,--disable-new-dtags")
