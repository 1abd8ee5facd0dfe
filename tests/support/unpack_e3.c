/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_e3 - rebuild the demo model with 3-bit experts from the 4-bit demo and a small delta.
 *
 *   unpack_e3 decode DELTA SOURCE TARGET     SOURCE is models/demo/model.safetensors
 *   unpack_e3 encode PLAN SOURCE TARGET DELTA  (tools/test-data/make_e3_delta.py writes PLAN)
 *
 * Both files were quantised from the same bf16 weights by the MLX rule, so in a group of 64
 *     w = edge + edge / n * q      (bias = edge, scale = edge / n, n an integer)
 * with the same edge: the 3-bit code is q4 * n3 / n4 up to half a 4-bit step. The code is therefore
 * sent as three adaptive binary choices whose context is (n4, n3, q4): where the 4-bit cell lies
 * inside one 3-bit cell the choice costs next to nothing. 23 MB become about 2 MB.
 *
 * DELTA and PLAN: u64 magic, source bytes, target bytes, n_ops; per op 8 u64: kind (0 copy, 1 experts),
 * then copy: source offset, target offset, n; experts: source weight, scales, biases, target weight,
 * scales, biases, n_groups; then u64 n and n literal bytes (the target's head); DELTA goes on with
 * the coded choices.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 64, N3_ESCAPE = 15, N_CODE_MODELS = 16 * 16 * 16 * 8, N_N3_MODELS = 16 * 16 };
static const uint64_t MAGIC = 0x31653361746c6564u; /* "delta3e1" */

/* ---- an adaptive binary range coder: one code path for both directions ---- */
typedef struct {
    uint16_t p1; /* chance of a 1, 1/65536 */
    uint8_t rate;
} model;

typedef struct {
    int encoding;
    uint32_t low, high, code;
    uint8_t *bytes;
    size_t n, max;
} coder;

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "unpack_e3: %s\n", what);
    exit(1);
}

static void put_byte(coder *c, uint8_t byte)
{
    if (c->n == c->max)
        die("the coded part is larger than expected");
    c->bytes[c->n++] = byte;
}

static uint8_t next_byte(coder *c) { return c->n < c->max ? c->bytes[c->n++] : 0; }

static unsigned code_bit(coder *c, uint32_t p1, unsigned bit)
{
    const uint32_t mid = c->low + (uint32_t)(((uint64_t)(c->high - c->low) * p1) >> 16);
    if (!c->encoding)
        bit = c->code <= mid;
    if (bit)
        c->high = mid;
    else
        c->low = mid + 1;
    while (((c->low ^ c->high) >> 24) == 0) {
        if (c->encoding)
            put_byte(c, (uint8_t)(c->high >> 24));
        else
            c->code = c->code << 8 | next_byte(c);
        c->low <<= 8;
        c->high = c->high << 8 | 255;
    }
    return bit;
}

static unsigned code_model(coder *c, model *m, unsigned bit)
{
    const uint32_t p1 = m->p1 < 16 ? 16 : m->p1 > 65520 ? 65520 : m->p1;
    bit = code_bit(c, p1, bit);
    if (bit)
        m->p1 = (uint16_t)(m->p1 + ((65535 - m->p1) >> m->rate));
    else
        m->p1 = (uint16_t)(m->p1 - (m->p1 >> m->rate));
    if (m->rate < 8)
        m->rate++;
    return bit;
}

/* `n_bits` bits, most significant first, through a tree of 2^n_bits models. */
static unsigned code_symbol(coder *c, model *tree, int n_bits, unsigned symbol)
{
    unsigned node = 1;
    for (int i = n_bits - 1; i >= 0; i--)
        node = node << 1 | code_model(c, &tree[node], (symbol >> i) & 1);
    return node - (1u << n_bits);
}

static uint16_t code_raw16(coder *c, uint16_t v)
{
    unsigned out = 0;
    for (int i = 15; i >= 0; i--)
        out = out << 1 | code_bit(c, 32768, (v >> i) & 1u);
    return (uint16_t)out;
}

/* ---- the MLX rule ---- */
static float from_bf16(uint16_t h)
{
    const uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static uint16_t to_bf16(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

static uint16_t load16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static void store16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

/* n of "scale = edge / n", 0 where the group has no edge. */
static unsigned steps_of(uint16_t scale, uint16_t edge)
{
    const float s = from_bf16(scale), e = from_bf16(edge);
    const float n = s == 0 ? 0 : fabsf(rintf(e / s));
    return n >= 0 && n < 15 ? (unsigned)n : 15; /* NaN too: any value will do, it is a context */
}

static uint16_t scale3_of(uint16_t scale4, uint16_t edge, unsigned n3)
{
    const float e = from_bf16(edge);
    const int negative = (from_bf16(scale4) < 0) != (e < 0); /* the edge lies on scale's other side */
    return to_bf16(e / (negative ? -(float)n3 : (float)n3));
}

/* Which n3 explains the target's scale; N3_ESCAPE if none does. */
static unsigned find_n3(uint16_t scale4, uint16_t edge4, uint16_t scale3, uint16_t edge3)
{
    if (edge3 == edge4)
        for (unsigned n3 = 1; n3 < N3_ESCAPE; n3++)
            if (scale3_of(scale4, edge4, n3) == scale3)
                return n3;
    return N3_ESCAPE;
}

typedef struct {
    model code[N_CODE_MODELS];
    model n3[N_N3_MODELS];
} models;

/* One group; `t*` point into the target, which is read when encoding and written when decoding. */
static void code_group(coder *c, models *m, const uint8_t *w4, uint16_t scale4, uint16_t edge4,
                       uint8_t *w3, uint8_t *t_scale, uint8_t *t_edge)
{
    const unsigned n4 = steps_of(scale4, edge4);
    unsigned n3 = 0;
    uint16_t scale3 = 0, edge3 = 0;
    if (c->encoding) {
        scale3 = load16(t_scale);
        edge3 = load16(t_edge);
        n3 = find_n3(scale4, edge4, scale3, edge3);
    }
    n3 = code_symbol(c, &m->n3[n4 * 16], 4, n3);
    if (n3 == N3_ESCAPE) {
        scale3 = code_raw16(c, scale3);
        edge3 = code_raw16(c, edge3);
    } else {
        scale3 = scale3_of(scale4, edge4, n3);
        edge3 = edge4;
    }
    model *trees = &m->code[(n4 * 16 + n3) * 16 * 8];
    for (int i = 0; i < GROUP; i += 8) {
        uint32_t in = 0, out = 0;
        uint8_t *p = w3 + i / 8 * 3;
        if (c->encoding)
            in = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16;
        for (int k = 0; k < 8; k++) {
            const unsigned q4 = (w4[(i + k) / 2] >> ((k & 1) * 4)) & 15;
            out |= (uint32_t)code_symbol(c, &trees[q4 * 8], 3, (in >> (3 * k)) & 7) << (3 * k);
        }
        if (!c->encoding) {
            p[0] = (uint8_t)out;
            p[1] = (uint8_t)(out >> 8);
            p[2] = (uint8_t)(out >> 16);
        }
    }
    if (!c->encoding) {
        store16(t_scale, scale3);
        store16(t_edge, edge3);
    }
}

/* ---- files ---- */
typedef struct {
    uint8_t *p;
    size_t n;
} blob;

static blob read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL || fseek(f, 0, SEEK_END) != 0)
        die(path);
    const long n = ftell(f);
    blob b = { .p = malloc((size_t)n + 1), .n = (size_t)n };
    rewind(f);
    if (b.p == NULL || fread(b.p, 1, b.n, f) != b.n)
        die(path);
    fclose(f);
    return b;
}

static void write_file(const char *path, const uint8_t *a, size_t n_a, const uint8_t *b, size_t n_b)
{
    FILE *f = fopen(path, "wb");
    if (f == NULL || fwrite(a, 1, n_a, f) != n_a || (n_b > 0 && fwrite(b, 1, n_b, f) != n_b) || fclose(f) != 0)
        die(path);
}

static uint64_t get_u64(const blob *b, size_t *at)
{
    uint64_t v = 0;
    if (b->n < 8 || *at > b->n - 8)
        die("the plan is cut short");
    for (int i = 7; i >= 0; i--)
        v = v << 8 | b->p[*at + (size_t)i];
    *at += 8;
    return v;
}

static void need(const blob *b, uint64_t offset, uint64_t n)
{
    if (offset > b->n || n > b->n - offset)
        die("the plan points outside a file");
}

static void run_op(coder *c, models *m, const uint64_t op[8], const blob *src, blob *dst)
{
    if (op[0] == 0) {
        need(src, op[1], op[3]);
        need(dst, op[2], op[3]);
        if (!c->encoding)
            memcpy(dst->p + op[2], src->p + op[1], op[3]);
        else if (memcmp(dst->p + op[2], src->p + op[1], op[3]) != 0)
            die("a tensor to be copied differs");
        return;
    }
    const uint64_t n = op[7];
    if (op[0] != 1 || n > dst->n)
        die("unknown operation");
    need(src, op[1], n * 32);
    need(src, op[2], n * 2);
    need(src, op[3], n * 2);
    need(dst, op[4], n * 24);
    need(dst, op[5], n * 2);
    need(dst, op[6], n * 2);
    for (uint64_t g = 0; g < n; g++)
        code_group(c, m, src->p + op[1] + g * 32, load16(src->p + op[2] + g * 2), load16(src->p + op[3] + g * 2),
                   dst->p + op[4] + g * 24, dst->p + op[5] + g * 2, dst->p + op[6] + g * 2);
}

int main(int argc, char **argv)
{
    const int encoding = argc == 6 && strcmp(argv[1], "encode") == 0;
    if (!encoding && (argc != 5 || strcmp(argv[1], "decode") != 0))
        die("usage: unpack_e3 decode DELTA SOURCE TARGET | encode PLAN SOURCE TARGET DELTA");
    blob plan = read_file(argv[2]), src = read_file(argv[3]), dst = { 0 };
    size_t at = 0;
    if (get_u64(&plan, &at) != MAGIC || get_u64(&plan, &at) != src.n)
        die("wrong delta or wrong source");
    const uint64_t n_target = get_u64(&plan, &at), n_ops = get_u64(&plan, &at);
    const size_t ops_at = at;
    at += n_ops * 64;
    const uint64_t n_head = get_u64(&plan, &at);
    need(&plan, at, n_head);
    if (encoding)
        dst = read_file(argv[4]);
    else
        dst = (blob){ .p = calloc(1, n_target), .n = n_target };
    if (dst.p == NULL || dst.n != n_target || n_head > dst.n)
        die("wrong target size");
    memcpy(dst.p, plan.p + at, n_head);
    at += n_head;

    models *m = malloc(sizeof *m);
    coder c = { .encoding = encoding, .high = UINT32_MAX, .bytes = plan.p + at, .max = plan.n - at };
    if (encoding)
        c = (coder){ .encoding = 1, .high = UINT32_MAX, .bytes = malloc(dst.n), .max = dst.n };
    if (m == NULL || c.bytes == NULL)
        die("no memory");
    for (size_t i = 0; i < N_CODE_MODELS; i++)
        m->code[i] = (model){ .p1 = 32768, .rate = 1 };
    for (size_t i = 0; i < N_N3_MODELS; i++)
        m->n3[i] = (model){ .p1 = 32768, .rate = 1 };
    for (int i = 0; !encoding && i < 4; i++)
        c.code = c.code << 8 | next_byte(&c);
    for (uint64_t i = 0, p = ops_at; i < n_ops; i++) {
        uint64_t op[8];
        for (int k = 0; k < 8; k++)
            op[k] = get_u64(&plan, &p);
        run_op(&c, m, op, &src, &dst);
    }
    for (int i = 0; encoding && i < 4; i++)
        put_byte(&c, (uint8_t)(c.high >> (24 - 8 * i)));
    if (encoding)
        write_file(argv[5], plan.p, at, c.bytes, c.n);
    else
        write_file(argv[4], dst.p, dst.n, NULL, 0);
    free(m);
    free(src.p);
    free(dst.p);
    if (encoding)
        free(c.bytes);
    free(plan.p);
    return 0;
}
