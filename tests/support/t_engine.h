/* SPDX-License-Identifier: Apache-2.0 */
/* support/t_engine.h - stores of the test models, and what tests do with an open engine. */
#ifndef AEG_TESTS_T_ENGINE_H
#define AEG_TESTS_T_ENGINE_H

#include "aegis/aegis.h"
#include "support/t.h"
#include "support/t_tensors.h"

/* Stores packed into the build tree by the test `stores` (tests/support/make_stores.c). */
#define T_STORE_DEMO AEGIS_STORES_DIR "/demo"             /* models/demo as it is            */
#define T_STORE_OUTLINE AEGIS_STORES_DIR "/demo-outline"  /* the same without weights        */
#define T_STORE_DEMO_E3 AEGIS_STORES_DIR "/demo-e3"       /* experts at 3 bits               */
/* The same two with the norm weights that the goldens were computed with (tests/data/README.md). */
#define T_STORE_DEMO_EXACT AEGIS_STORES_DIR "/demo-exact"
#define T_STORE_DEMO_E3_EXACT AEGIS_STORES_DIR "/demo-e3-exact"
#define T_STORE_TINY_KEEP AEGIS_STORES_DIR "/tiny-keep"   /* qwen35moe-tiny, bf16 kept       */
#define T_STORE_TINY_GGUF AEGIS_STORES_DIR "/tiny-gguf"   /* the same numbers from a GGUF file  */
#define T_STORE_TINY_SPLIT AEGIS_STORES_DIR "/tiny-split" /* and from a split one, with fused tensors */
#define T_STORE_TINY_4 AEGIS_STORES_DIR "/tiny-4"         /* the same at 4 bits              */
/* Tiny models with latent attention, bf16 kept (tests/data/models). */
#define T_STORE_DEEPSEEK2 AEGIS_STORES_DIR "/deepseek2"
#define T_STORE_DEEPSEEK2_LITE AEGIS_STORES_DIR "/deepseek2-lite"
#define T_STORE_XING4 AEGIS_STORES_DIR "/xing4"
#define T_STORE_XING4_LOUD AEGIS_STORES_DIR "/xing4-loud"         /* streams beyond f16        */
#define T_STORE_XING4_GGUF AEGIS_STORES_DIR "/xing4-gguf"         /* the release's types        */
#define T_STORE_DEEPSEEK2_GGUF AEGIS_STORES_DIR "/deepseek2-gguf" /* attn_kv_b in one tensor    */
/* models/NAME of tests/data as published, bf16 kept, and at 8 bits: qwen3moe, qwen3next, olmoe. */
#define T_STORE_KEEP(name) AEGIS_STORES_DIR "/" name "-keep"
#define T_STORE_8(name) AEGIS_STORES_DIR "/" name "-8"

/* Everything default, all resident, 2 threads. */
aegis_options t_engine_options(const char *store);
/* Opens or fails the test. */
aegis_engine *t_engine_open(const aegis_options *options);

/* ids of a golden tensor; free with t_free. */
uint32_t *t_ids(const t_tensor *t, size_t *n);

uint32_t t_argmax(const float *x, uint32_t n);
/* Natural-log probability of `id`, in double. */
double t_log_prob(const float *logits, uint32_t n, uint32_t id);

/* XXH3 of the logits of every position of `ids` (evaluated from an empty session) and of n_steps greedy
 * steps after them: equal numbers mean equal bits. */
uint64_t t_logits_hash(aegis_engine *e, const uint32_t *ids, size_t n, uint32_t n_steps);

#endif
