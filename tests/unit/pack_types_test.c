/* SPDX-License-Identifier: Apache-2.0 */
/* Which tensors of a GGUF file named bits change: those that get smaller. What the quantiser rounded already to as few bits stays
 * exactly, and so do the routers that it left as plain numbers. */
#include "support/t.h"

#include <stdio.h>
#include <string.h>

#include "aegis/pack.h"
#include "expert/store.h"

#define XING4 AEGIS_MODELS_DIR "/xing4-gguf/model.gguf" /* BF16 attention and embedding, IQ4_NL networks, Q6_K head, F32 routers */

static aeg_memory memory = { .name = "types" };
static aegis_error err;

static aeg_store *pack(const char *model, int bits)
{
    char path[4096];
    aeg_store *store = NULL;
    const aegis_pack_options options = { .expert_bits = bits, .dense_bits = bits };
    snprintf(path, sizeof path, "%s/store", t_folder());
    T_OK(aegis_pack(model, path, &options, NULL, &err), &err);
    T_OK(aeg_store_open(&store, path, &memory, &err), &err);
    return store;
}

static void check(aeg_weight_type type, const char *name, const char *want)
{
    char text[AEG_TYPE_TEXT];
    aeg_weight_type_text(text, type);
    if (strcmp(text, want) != 0)
        fail_msg("%s is %s, expected %s", name, text, want);
}

static void check_tensor(const aeg_store *store, const char *name, const char *want)
{
    const aeg_store_tensor *t = aeg_store_find(store, name);
    T_CHECK(t != NULL);
    check(t->type, name, want);
}

static void check_what_decides(const aeg_store *store)
{
    check_tensor(store, "layers.1.router", "f32");
    check_tensor(store, "layers.1.hc_ffn.fn", "bf16");
}

static void eight_bits_leave_what_has_fewer(void **state)
{
    (void)state;
    aeg_store *store = pack(XING4, 8);
    check_what_decides(store);
    check_tensor(store, "layers.1.mla.q_a", "affine 8-bit g64 bf16");
    check_tensor(store, "layers.1.mla.k_b", "affine 8-bit g32 bf16");
    check_tensor(store, "layers.1.shared.gate", "iq4_nl");
    check_tensor(store, "layers.0.dense.down", "iq4_nl");
    check_tensor(store, "lm_head", "q6_k");
    check(store->embed.type, "embed", "affine 8-bit g64 bf16");
    check(store->experts.gate_up[1], "experts", "iq4_nl");
    aeg_store_close(store);
}

static void three_bits_change_four(void **state)
{
    (void)state;
    aeg_store *store = pack(XING4, 3);
    check_what_decides(store);
    check_tensor(store, "layers.1.mla.k_b", "affine 8-bit g32 bf16");
    check_tensor(store, "layers.1.shared.gate", "affine 3-bit g64 f16");
    check_tensor(store, "lm_head", "affine 3-bit g64 f16");
    check(store->experts.gate_up[1], "experts", "affine 3-bit g64 f16");
    aeg_store_close(store);
}

/* The model with the first expert layer's router as `type` (ggml's number): half the bytes, the others are a gap. */
static const char *with_router(uint32_t type)
{
    static const char name[] = "blk.1.ffn_gate_inp.weight";
    static char path[4096];
    size_t n = 0;
    char *file = t_read_file(XING4, &n), *at = memmem(file, n, name, sizeof name - 1);
    T_CHECK(at != NULL);
    at += sizeof name - 1 + 4 + 2 * 8; /* the number of dimensions, two of them */
    T_CHECK(memcmp(at, &(uint32_t){ 0 }, 4) == 0); /* F32 */
    memcpy(at, &type, sizeof type);
    snprintf(path, sizeof path, "%s/router.gguf", t_folder());
    t_write_file(path, file, n);
    t_free(file);
    return path;
}

static void named_bits_leave_plain_routers(void **state)
{
    (void)state;
    static const struct {
        uint32_t type;
        const char *text;
    } types[] = { { 1, "f16" }, { 30, "bf16" } };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        aeg_store *store = pack(with_router(types[i].type), 8);
        check_tensor(store, "layers.1.router", types[i].text);
        aeg_store_close(store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eight_bits_leave_what_has_fewer),
        cmocka_unit_test(three_bits_change_four),
        cmocka_unit_test(named_bits_leave_plain_routers),
    };
    return cmocka_run_group_tests_name("pack types", tests, NULL, NULL);
}
