/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/kernels.h - the table of arithmetic, chosen once at open.
 *
 * Classes: EXACT (integers, copies, unpacking, top-k) and ORDERED: every float result has ONE defined
 * order of operations, so all ISA levels give the same bits (tests compare with memcmp):
 *   - elementwise ops use the formulas below with fmaf where written, no contraction elsewhere;
 *   - a reduction over n keeps 16 partial sums p[i % 16] with fmaf (element i ascending), then the fixed tree
 *     p[i] += p[i+8] (i<8), += p[i+4] (i<4), += p[i+2] (i<2), p[0]+p[1];
 *   - max reductions are order free;  exp, sigmoid, silu, softplus are ours (kernels/math.h).
 * All buffers are f32, 4-byte aligned at least; sizes are multiples of 16 where said "n16". An output may be the
 * very same buffer as an input of equal shape (callers do that), so tails must not re-read what was written.
 * Thread: any (no state).
 */
#ifndef AEG_KERNELS_KERNELS_H
#define AEG_KERNELS_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kernels/attention.h"
#include "kernels/hyper.h"
#include "kernels/route.h"
#include "kernels/weights.h"

typedef enum {
    AEG_CPU_SCALAR = 0,
    AEG_CPU_AVX2 = 1,    /* AVX2 + FMA + F16C + BMI2                        */
    AEG_CPU_AVX512 = 2,  /* F, BW, DQ, VL, VNNI                             */
    AEG_CPU_NEON = 4,    /* ASIMD; dot-product extension used when present  */
} aeg_cpu;

/* What this processor has (a mask of aeg_cpu). AVX512 implies AVX2. */
uint32_t aeg_cpu_detect(void);
/* "scalar", "avx2", "avx512", "neon": the levels up to and including the named one. AEGIS_E_USAGE for another
 * name; AEGIS_E_HARDWARE if this processor lacks it. NULL or "auto": everything detected. */
aegis_status aeg_cpu_parse(uint32_t *mask, const char *name, aegis_error *err);
const char *aeg_cpu_name(uint32_t mask); /* highest level in the mask */

enum { AEG_GDN_STRIP = 16 };

/* Gated delta rule for one value head and strips [strip0, strip1) of 16 value columns, n_tokens in order.
 * state: [dv/16][dk][16] f32, read and written. Row strides in floats between tokens.
 * Per token and column, i over dk ascending:
 *   pass 1: s = decay*S[i]; S[i] = s; r = fmaf(k[i], s, r)      (r from 0)
 *   delta = beta * (v - r)
 *   pass 2: s = fmaf(k[i], delta, S[i]); S[i] = s; o = fmaf(q[i], s, o)   (o from 0)
 * q, k already normalised (q scaled); decay = exp(g) in (0, 1]; beta in (0, 1). */
typedef struct {
    float *state;
    const float *q, *k;          /* [n_tokens] rows of dk   */
    size_t q_stride, k_stride;
    const float *v;              /* [n_tokens] rows of dv   */
    size_t v_stride;
    const float *decay, *beta;   /* one value per token     */
    size_t decay_stride, beta_stride;
    float *o;                    /* [n_tokens] rows of dv   */
    size_t o_stride;
    uint32_t dk, dv;             /* dk multiple of 4, dv multiple of 16 */
    uint32_t n_tokens;
} aeg_gdn_args;

/* X(name, return type, parameters). Each op's file is kernels/<isa>/<topic>.c. */
#define AEG_KERNEL_LIST(X)                                                                              \
    /* y = x * rsqrt(mean(x^2) + eps) * w: ss by 16 partial sums; r = 1/sqrtf(ss/n + eps); (x*r)*w */     \
    X(rmsnorm, void, (float *y, const float *x, const float *w, uint32_t n16, float eps))                \
    /* y = w * (o*r) * silu(z), r as above; evaluated ((o*r)*w)*silu(z) */                                \
    X(rmsnorm_gated, void, (float *y, const float *o, const float *z, const float *w, uint32_t n16, float eps)) \
    /* x *= scale / sqrtf(sum(x^2) + eps), the factor rounded once: f = scale * (1/sqrtf(ss + eps)) */    \
    X(l2norm, void, (float *x, uint32_t n16, float eps, float scale))                                    \
    /* y = silu(gate) * up, silu(x) = x * sigmoid(x) */                                                   \
    X(silu_mul, void, (float *y, const float *gate, const float *up, uint32_t n))                        \
    /* x *= sigmoid(gate) */                                                                              \
    X(sigmoid_mul, void, (float *x, const float *gate, uint32_t n))                                      \
    /* y += x */                                                                                          \
    X(add, void, (float *y, const float *x, uint32_t n))                                                 \
    /* y = fmaf(a, x, y) */                                                                               \
    X(axpy, void, (float *y, float a, const float *x, uint32_t n))                                       \
    /* dot by 16 partial sums; n16 */                                                                     \
    X(dot, float, (const float *a, const float *b, uint32_t n16))                                        \
    /* softmax over n, then the top_k largest (ties: lower id), ids ascending, weights renormalised:        \
     * m = max; e_i = exp(l_i - m); weight = e_i / (sum of the chosen e, ascending id order) if             \
     * `renormalise`, else e_i / sum of all e (16 partial sums). scratch: n floats. EXACT ids (a NaN last). */ \
    X(router, void, (uint16_t *ids, float *weights, const float *logits, uint32_t n, uint32_t top_k,      \
                     int renormalise, float *scratch))                                                   \
    X(route, void, (const aeg_route_args *a)) X(hyper_dots, void, (const aeg_hyper_dots_args *a)) /* kernels/route.h, hyper.h */ \
    X(hyper_gates, void, (const aeg_hyper_args *a)) /* kernels/hyper.h; streams lie `stride` floats apart */ \
    X(hyper_collapse, void, (float *y, const float *x, size_t stride, const float *pre, uint32_t n))      \
    X(hyper_update, void, (float *x, size_t stride, const float *y, const aeg_hyper_gates *g, uint32_t n)) \
    /* out[c] = silu(sum_j w[j*n + c] * x_j[c]), j = 0..3 ascending, first a product then fmaf; x_0..x_2 are the \
     * three rows before (oldest first), x_3 the current row */                                           \
    X(conv4_silu, void, (float *out, const float *x0, const float *x1, const float *x2, const float *x3,  \
                         const float *w, uint32_t n))                                                    \
    /* beta[h] = sigmoid(b[h]); decay[h] = exp(-exp(a_log[h]) * softplus(a[h] + dt_bias[h])) */            \
    X(gdn_gates, void, (float *beta, float *decay, const float *b, const float *a, const float *a_log,    \
                        const float *dt_bias, uint32_t n_heads))                                         \
    X(gdn, void, (const aeg_gdn_args *a, uint32_t strip0, uint32_t strip1))                              \
    /* in place on x[0..2*half): pair (i, i+half) by cos[i], sin[i]:                                        \
     * out_i = fmaf(x_i, c, -(x_j*s)); out_j = fmaf(x_j, c, x_i*s) (the product rounded first) */          \
    X(rope, void, (float *x, const float *cos, const float *sin, uint32_t half))                         \
    X(rope_pairs, void, (float *x, const float *cos, const float *sin, uint32_t half)) /* pairs (2i, 2i+1) */ \
    /* in place, n16 a power of two: for h = 1, 2, 4 .. n/2: (x_i, x_i+h) <- (x_i + x_i+h, x_i - x_i+h) where bit  \
     * h of i is 0 (the Walsh-Hadamard transform in natural order, not normalised) */                     \
    X(hadamard, void, (float *x, uint32_t n16))                                                          \
    X(attn_f32, void, (const aeg_attn_args *a))  /* kernels/attention.h */                               \
    X(attn_f16, void, (const aeg_attn_args *a))                                                          \
    X(attn_q8, void, (const aeg_attn_args *a))                                                           \
    X(attn_q8_latent, void, (const aeg_attn_args *a))                                                    \
    X(attn_t4, void, (const aeg_attn_args *a))                                                           \
    X(attn_t3, void, (const aeg_attn_args *a))                                                           \
    /* merge a later block (m2, l2, acc2) into (m, l, acc): M = max; f = exp(m-M), f2 = exp(m2-M);          \
     * l = fmaf(l, f, l2*f2); acc = fmaf(acc, f, acc2*f2); m = M. First block: m = -inf, l = 0, acc = 0,    \
     * where f is taken as 0. */                                                                          \
    X(attn_merge, void, (float *m, float *l, float *acc, float m2, float l2, const float *acc2,           \
                         uint32_t head_dim))                                                             \
    /* f32 -> f16 round to nearest even (overflow to inf) */                                               \
    X(store_f16, void, (uint16_t *y, const float *x, uint32_t n))                                        \
    /* one row into codes; see aeg_acts. d, s: [n/block]. A block with a NaN or infinity gets d = s = NaN and    \
     * codes 0: loud, where clamped codes would pass for numbers */                                        \
    X(quantize_i8, void, (int8_t *q, float *d, float *s, const float *x, uint32_t n, uint32_t block))     \
    X(quantize_i16, void, (int16_t *q, float *d, float *s, const float *x, uint32_t n, uint32_t block))    \
    X(code_sums_i8, void, (int32_t *sums, const int8_t *q, uint32_t n16)) /* q[16i] + .. + q[16i+15]; EXACT */ \
    X(code_sums_i16, void, (int32_t *sums, const int16_t *q, uint32_t n16))

typedef struct {
#define AEG_KERNEL_FIELD(name, ret, params) ret (*name) params;
    AEG_KERNEL_LIST(AEG_KERNEL_FIELD)
#undef AEG_KERNEL_FIELD
    /* [bits] for AFFINE (index 2, 3, 4, 5, 6, 8), by activation kind */
    aeg_matmul_fn affine[9][3];
    aeg_matmul_fn plain[3], f8; /* AEG_W_F32, AEG_W_F16, AEG_W_BF16; AEG_W_F8; f32 activations */
    aeg_matmul_fn blocks[AEG_W_BLOCKS_END][3]; /* [kind] from AEG_W_Q8_0 on, by activation kind */
    uint32_t cpu;            /* mask these entries were chosen from */
} aeg_kernels;

/* Scalar fills every entry; each wider level only overwrites what it has. */
void aeg_kernels_init(aeg_kernels *k, uint32_t cpu);
void aeg_kernels_scalar(aeg_kernels *k);
void aeg_kernels_avx2(aeg_kernels *k);    /* empty on other architectures */
void aeg_kernels_avx512(aeg_kernels *k);
void aeg_kernels_neon(aeg_kernels *k);

/* The matmul for a weight type and an activation kind; plain weights and F8 ignore the kind. */
aeg_matmul_fn aeg_kernels_matmul(const aeg_kernels *k, aeg_weight_type type, aeg_act_kind act);

/* Known answers, checked once at open: a level whose answers differ from scalar is dropped and *dropped names
 * it (else NULL). */
void aeg_kernels_self_check(aeg_kernels *k, const char **dropped);

#endif
