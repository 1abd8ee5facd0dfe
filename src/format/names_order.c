/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that a source keeps in another order than ours. */
#include "format/names.h"

void aeg_names_split_kv_b(const aeg_hparams *h, aeg_part part, aeg_source_matrix *m)
{
    const bool keys = part == AEG_PART_MLA_K_B;
    m->transposed = keys;
    m->order = (aeg_row_order){ .n_segments = 1, .n_groups = h->n_heads, .stride = h->qk_nope + h->v_dim,
                                .segment = { { keys ? 0 : h->qk_nope, keys ? h->qk_nope : h->v_dim } } };
}

uint64_t aeg_source_row(const aeg_source_matrix *m, uint32_t row, uint32_t *n)
{
    const aeg_row_order *o = &m->order;
    uint32_t at = row;
    if (o->n_segments == 0) {
        *n = m->n_rows - row;
        return m->row0 + row;
    }
    uint32_t s = 0;
    for (; at >= o->n_groups * o->segment[s].run; s++)
        at -= o->n_groups * o->segment[s].run;
    const uint32_t run = o->segment[s].run;
    *n = run - at % run;
    return (uint64_t)(at / run) * o->stride + o->segment[s].offset + at % run;
}

uint64_t aeg_source_scale_row(const aeg_source_matrix *m, uint64_t source_row)
{
    const uint64_t rows = m->weight->rank < 2 ? 1 : m->weight->dims[m->weight->rank - 2];
    return source_row / rows * ((rows + AEG_F8_BLOCK - 1) / AEG_F8_BLOCK) + source_row % rows / AEG_F8_BLOCK;
}

aeg_row_order aeg_names_woven(const aeg_hparams *h, aeg_part part)
{
    const uint32_t ratio = h->gdn_v_heads / h->gdn_k_heads, k = h->gdn_k_dim, v = ratio * h->gdn_v_dim, heads = h->gdn_k_heads;
    switch (part) {
    case AEG_PART_GDN_QKV: return (aeg_row_order){ 3, heads, 2 * k + 2 * v, { { 0, k }, { k, k }, { 2 * k, v } } };
    case AEG_PART_GDN_Z: return (aeg_row_order){ 1, heads, 2 * k + 2 * v, { { 2 * k + v, v } } };
    case AEG_PART_GDN_B: return (aeg_row_order){ 1, heads, 2 * ratio, { { 0, ratio } } };
    default: return (aeg_row_order){ 1, heads, 2 * ratio, { { ratio, ratio } } }; /* AEG_PART_GDN_A */
    }
}
