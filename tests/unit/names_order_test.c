/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that a source keeps in another order: every one is found, and none twice. */
#include "support/t.h"

#include <string.h>

#include "format/names.h"

enum { K_HEADS = 3, RATIO = 2, K_DIM = 16, V_DIM = 8, HIDDEN = 64, KEY = K_HEADS * K_DIM, VALUE = K_HEADS * RATIO * V_DIM };
enum { QKVZ_BLOCK = 2 * K_DIM + 2 * RATIO * V_DIM };

static aeg_hparams hybrid(void)
{
    aeg_hparams h;
    aeg_hparams_init(&h);
    strcpy(h.family, "qwen3next");
    h.hidden_size = HIDDEN;
    h.n_layers = 1;
    h.gdn_k_heads = K_HEADS, h.gdn_v_heads = K_HEADS * RATIO, h.gdn_k_dim = K_DIM, h.gdn_v_dim = V_DIM, h.conv_kernel = 4;
    return h;
}

/* Source rows of all rows, run by run as packing reads them; marks them in seen. */
static void rows_of(const aeg_source_matrix *m, uint32_t *rows, bool *seen)
{
    for (uint32_t row = 0, run; row < m->n_rows; row += run) {
        const uint64_t at = aeg_source_row(m, row, &run);
        T_CHECK(run > 0 && row + run <= m->n_rows);
        for (uint32_t i = 0; i < run; i++) {
            rows[row + i] = (uint32_t)at + i;
            T_CHECK(!seen[at + i]);
            seen[at + i] = true;
        }
    }
}

static aeg_source_matrix woven(const aeg_hparams *h, aeg_part part, uint32_t n_rows)
{
    return (aeg_source_matrix){ .n_rows = n_rows, .n_cols = HIDDEN, .order = aeg_names_woven(h, part) };
}

static void woven_rows_are_taken_apart(void **state)
{
    (void)state;
    const aeg_hparams h = hybrid();
    bool seen[K_HEADS * QKVZ_BLOCK] = { 0 }, seen_gates[2 * K_HEADS * RATIO] = { 0 };
    uint32_t qkv[2 * KEY + VALUE], z[VALUE], b[K_HEADS * RATIO], a[K_HEADS * RATIO];
    const aeg_source_matrix m[] = { woven(&h, AEG_PART_GDN_QKV, 2 * KEY + VALUE), woven(&h, AEG_PART_GDN_Z, VALUE),
                                    woven(&h, AEG_PART_GDN_B, K_HEADS * RATIO), woven(&h, AEG_PART_GDN_A, K_HEADS * RATIO) };
    rows_of(&m[0], qkv, seen);
    rows_of(&m[1], z, seen);
    rows_of(&m[2], b, seen_gates);
    rows_of(&m[3], a, seen_gates);
    for (uint32_t i = 0; i < K_HEADS * QKVZ_BLOCK; i++)
        T_CHECK(seen[i]);
    for (uint32_t head = 0; head < K_HEADS; head++) {
        const uint32_t block = head * QKVZ_BLOCK, v = block + 2 * K_DIM;
        T_CHECK(qkv[head * K_DIM] == block && qkv[head * K_DIM + 5] == block + 5);
        T_CHECK(qkv[KEY + head * K_DIM + 1] == block + K_DIM + 1);
        for (uint32_t r = 0; r < RATIO; r++) { /* value head head * RATIO + r */
            const uint32_t value = (head * RATIO + r) * V_DIM;
            T_CHECK(qkv[2 * KEY + value + 3] == v + r * V_DIM + 3 && z[value + 3] == v + (RATIO + r) * V_DIM + 3);
            T_CHECK(b[head * RATIO + r] == head * 2 * RATIO + r && a[head * RATIO + r] == head * 2 * RATIO + RATIO + r);
        }
    }
}

static void plain_rows_follow_each_other(void **state)
{
    (void)state;
    const aeg_source_matrix m = { .n_rows = 10, .row0 = 7 };
    uint32_t run;
    T_CHECK(aeg_source_row(&m, 0, &run) == 7 && run == 10);
    T_CHECK(aeg_source_row(&m, 4, &run) == 11 && run == 6);
}

/* GGUF files of qwen3next: b and a always woven, q, k, v and z in older ones. */
static void gguf_names_of_woven_tensors(void **state)
{
    (void)state;
    T_MEMORY(memory);
    aegis_error err = { 0 };
    aeg_source st;
    aeg_config config = { .hparams = hybrid() };
    const aeg_tensor tensors[] = {
        { .name = "blk.0.ssm_ba.weight", .dims = { 2 * K_HEADS * RATIO, HIDDEN }, .rank = 2, .dtype = AEG_DT_BF16 },
        { .name = "blk.0.ssm_in.weight", .dims = { K_HEADS * QKVZ_BLOCK, HIDDEN }, .rank = 2, .dtype = AEG_DT_BF16 },
    };
    T_OK(aeg_source_init(&st, 0, "test", &memory, &err), &err);
    for (int i = 0; i < 2; i++)
        T_OK(aeg_source_add(&st, &tensors[i], "test", &err), &err);
    T_OK(aeg_source_sort(&st, &err), &err);
    const aeg_names names = { .st = &st, .config = &config, .gguf = true };
    static const aeg_part parts[] = { AEG_PART_GDN_QKV, AEG_PART_GDN_Z, AEG_PART_GDN_B, AEG_PART_GDN_A };
    for (int i = 0; i < 4; i++) {
        const uint32_t n_rows = i == 0 ? 2 * KEY + VALUE : i == 1 ? VALUE : K_HEADS * RATIO;
        const aeg_layout_entry e = { .part = parts[i], .n_rows = n_rows, .n_cols = HIDDEN };
        const aeg_row_order want = aeg_names_woven(&config.hparams, parts[i]);
        aeg_source_matrix m;
        T_OK(aeg_names_matrix(&names, &e, &m, &err), &err);
        T_CHECK(m.n_rows == n_rows && memcmp(&m.order, &want, sizeof want) == 0);
        T_CHECK(strcmp(m.weight->name, tensors[i < 2 ? 1 : 0].name) == 0);
    }
    T_OK(aeg_names_check_unused(&names, &err), &err);
    config.hparams.gdn_v_dim = 2 * V_DIM; /* another shape than the file's */
    const aeg_layout_entry e = { .part = AEG_PART_GDN_Z, .n_rows = 2 * VALUE, .n_cols = HIDDEN };
    aeg_source_matrix m;
    T_FAILS(aeg_names_matrix(&names, &e, &m, &err), &err, AEGIS_E_MODEL, "blk.0.ssm_in.weight");
    aeg_source_close(&st);
    t_no_leak(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(woven_rows_are_taken_apart),
                                        cmocka_unit_test(plain_rows_follow_each_other),
                                        cmocka_unit_test(gguf_names_of_woven_tensors) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
