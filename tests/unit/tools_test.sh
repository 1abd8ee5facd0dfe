#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The checking tools find what they are for: each broken line below is seen, and the clean tree passes.
set -uo pipefail
tools=$AEGIS_SOURCE_DIR/tools
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{include/aegis,src/base,src/io,src/text,apps/cli,tests,tools,cmake,.ci}
failed=0

# expect TOOL FILE TEXT MESSAGE: with this content the tool fails and says MESSAGE
expect() {
    local output
    printf '%b' "$3" > "$root/$2"
    if output=$("$tools/$1" "$root") || [[ "$output" != *"$4"* ]]; then
        echo "$1 missed '$4' in $2: $output"
        failed=1
    fi
    rm "$root/$2"
}
spdx='/* SPDX-License-Identifier: Apache-2.0 */\n'
long=$(printf 'x;\\n%.0s' {1..80})

printf '%b' "$spdx"'#include "base/b.h"\nint aeg_x(void)\n{\n    return 0; /* free(x) */\n}\n' > "$root/src/io/ok.c"
for tool in check-deps check-style; do
    "$tools/$tool" "$root" > /dev/null || { echo "$tool fails on a clean tree"; failed=1; }
done
expect check-deps src/base/x.c "$spdx"'#include "io/io.h"\n' 'base is level 0, io is level 1'
expect check-deps src/io/x.c "$spdx"'#include "plan/plan.h"\n' 'plan is level 1'
expect check-deps apps/cli/x.c "$spdx"'#include "io/io.h"\n' 'an app sees only'
expect check-deps include/aegis/x.h "$spdx"'#include "base/error.h"\n' 'public headers'
expect check-style src/io/x.c 'int a;\n' 'the first line is not'
expect check-style src/io/x.c "$spdx"'\tint a;\n' 'a tab'
expect check-style src/io/x.c "$spdx"'int a; \n' 'blanks at the end'
expect check-style src/io/x.c "$spdx"'#if 0\n#endif\n' '#if 0'
expect check-style src/io/x.c "$spdx"'void f(void)\n{\n    g(malloc(3));\n}\n' 'malloc(): heap'
expect check-style src/io/x.c "$spdx"'void f(void)\n{\n    printf("x");\n}\n' 'printf(): library'
expect check-style src/io/x.c "$spdx"'#include <immintrin.h>\n' 'an intrinsics header'
expect check-style src/io/x.c "$spdx"'void f(void)\n{\n'"$long"'}\n' 'a function of 83 lines'
expect check-style src/io/x.h "$spdx$long$long" '161 lines, at most 150'
expect check-style tools/x 'echo\n' 'no SPDX line'

mkdir -p "$root/build/src"
echo 'int aeg_fine; int stray_name;' > "$root/x.c"
if cc -c -o "$root/x.o" "$root/x.c" && ar rcs "$root/build/src/libaegis_x.a" "$root/x.o"; then
    output=$("$tools/check-symbols" "$root/build" 2>&1) && { echo "check-symbols missed stray_name"; failed=1; }
    [[ "$output" == *stray_name* && "$output" != *aeg_fine* ]] || { echo "check-symbols: $output"; failed=1; }
fi
exit $failed
