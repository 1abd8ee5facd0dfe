/* SPDX-License-Identifier: Apache-2.0 */
/* format/layout.h - the dense tensors that hyper-parameters imply, in the order of dense.bin.
 *
 * One list serves the packer (what to look for) and the store (what must be there). Thread: any.
 */
#ifndef AEG_FORMAT_LAYOUT_H
#define AEG_FORMAT_LAYOUT_H

#include "base/error.h"
#include "format/hparams.h"

typedef enum {
    AEG_PART_MIXER_NORM, AEG_PART_GDN_QKV, AEG_PART_GDN_Z, AEG_PART_GDN_B, AEG_PART_GDN_A, AEG_PART_GDN_OUT,
    AEG_PART_GDN_CONV, AEG_PART_GDN_A_LOG, AEG_PART_GDN_DT_BIAS, AEG_PART_GDN_NORM, AEG_PART_ATTN_Q,
    AEG_PART_ATTN_K, AEG_PART_ATTN_V, AEG_PART_ATTN_O, AEG_PART_ATTN_Q_NORM, AEG_PART_ATTN_K_NORM,
    AEG_PART_MLA_Q_A, AEG_PART_MLA_Q_A_NORM, /* with q_lora only                                       */
    AEG_PART_MLA_Q_B,                        /* rows by head: nope, then rope; without q_lora all of q  */
    AEG_PART_MLA_KV_A,                       /* rows: latent, then the rotary key of all heads          */
    AEG_PART_MLA_KV_A_NORM,
    AEG_PART_MLA_K_B,                        /* [n_heads * kv_lora, qk_nope]: by head, transposed       */
    AEG_PART_MLA_V_B,                        /* [n_heads * v_dim, kv_lora]: by head                     */
    AEG_PART_MLA_O,
    AEG_PART_FFN_NORM, AEG_PART_ROUTER, AEG_PART_ROUTER_BIAS, AEG_PART_SHARED_GATE_PROJ, AEG_PART_SHARED_UP,
    AEG_PART_SHARED_DOWN, AEG_PART_SHARED_GATE, AEG_PART_DENSE_GATE, AEG_PART_DENSE_UP, AEG_PART_DENSE_DOWN,
    /* hyper-connections around the mixer and around the FFN, s streams: fn [(2 + s) * s, s * hidden]: pre [s], post [s],
     * mix [to s][from s]; base of as many; scale [3] of the three */
    AEG_PART_HC_ATTN_FN, AEG_PART_HC_ATTN_BASE, AEG_PART_HC_ATTN_SCALE,
    AEG_PART_HC_FFN_FN, AEG_PART_HC_FFN_BASE, AEG_PART_HC_FFN_SCALE,
    AEG_PART_FINAL_NORM, AEG_PART_LM_HEAD,
    AEG_N_PARTS,
} aeg_part;

enum { AEG_LAYOUT_NAME_MAX = 96, AEG_LAYOUT_NO_LAYER = UINT32_MAX };

typedef struct {
    char name[AEG_LAYOUT_NAME_MAX]; /* canonical, expert/store.h */
    aeg_part part;
    uint32_t layer;                 /* AEG_LAYOUT_NO_LAYER for the last two */
    bool vector;                    /* f32 [n_cols], n_rows = 1; gdn.conv has 4 * channels */
    uint32_t n_rows, n_cols;
} aeg_layout_entry;

/* Decides what is computed and is small: kept as precise as the source has it, whatever dense weights are packed to. */
bool aeg_part_delicate(aeg_part part);

/* Entries of a model whose hyper-parameters were checked. */
uint32_t aeg_layout_count(const aeg_hparams *h);
/* Entry `index` of aeg_layout_count. */
void aeg_layout_at(aeg_layout_entry *out, const aeg_hparams *h, uint32_t index);

#endif
