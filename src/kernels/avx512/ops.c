/* SPDX-License-Identifier: Apache-2.0 */
/* avx512/ops.c - the float ops of this level: the bodies of kernels/wide/ over avx512/lanes.h. */
#include "kernels/register.h"

#if defined(__AVX512F__)

#include "kernels/avx512/codes.h"
#include "kernels/avx512/ilanes.h"
#include "kernels/avx512/lanes.h"
#include "kernels/kv_codes.h"
#include "kernels/math.h"
#include "kernels/router_key.h"

#include "kernels/wide/lanes_math.inc.h"

#include "kernels/wide/attention.inc.h"
#include "kernels/wide/attention_codes.inc.h"
#include "kernels/wide/elementwise.inc.h"
#include "kernels/wide/gdn.inc.h"
#include "kernels/wide/hadamard.inc.h"
#include "kernels/wide/hyper.inc.h"
#include "kernels/wide/norm.inc.h"
#include "kernels/wide/quantize.inc.h"
#include "kernels/wide/router.inc.h"
#include "kernels/wide/route.inc.h"

void aeg_kernels_avx512(aeg_kernels *k)
{
#define SET_OP(name, ret, params) k->name = name;
    AEG_KERNEL_LIST(SET_OP)
#undef SET_OP
    aeg_matmul_avx512_register(k);
}

#else

void aeg_kernels_avx512(aeg_kernels *k) { (void)k; }

#endif
