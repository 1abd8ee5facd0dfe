/* SPDX-License-Identifier: Apache-2.0 */
#include "base/checked.h"
#include "base/process.h"
#include "base/processors.h"
#include "engine/engine_parts.h"

enum { DEFAULT_CTX = 4096, MAX_CHECKPOINTS = 64 };

static const uint64_t LEAVE_FREE = 1ull << 30; /* of the machine's memory, when no budget is named */

static aegis_status resolve_cpu(aeg_settings *s, const aegis_options *o, aegis_error *err)
{
    return aeg_cpu_parse(&s->cpu_mask, o->cpu, err);
}

static aegis_status resolve_sizes(aeg_settings *s, const aegis_options *o, const aeg_hparams *hp, aegis_error *err)
{
    s->n_ctx = o->n_ctx != 0 ? o->n_ctx : AEG_MIN((uint32_t)DEFAULT_CTX, hp->max_n_ctx);
    if (s->n_ctx > AEG_MAX_CONTEXT)
        return aeg_fail(err, AEGIS_E_USAGE, "context of %u tokens, expected 1 to %d", s->n_ctx, AEG_MAX_CONTEXT);
    if (s->n_ctx > hp->max_n_ctx)
        return aeg_fail(err, AEGIS_E_USAGE, "context of %u tokens, but the model was trained for %u", s->n_ctx,
                        hp->max_n_ctx);
    s->tune_threads = o->n_threads == 0;
    s->n_threads = s->tune_threads ? aeg_usable_cores() : o->n_threads;
    if (s->n_threads > AEG_MAX_THREADS)
        return aeg_fail(err, AEGIS_E_USAGE, "threads: %u, expected 1 to %d", s->n_threads, AEG_MAX_THREADS);
    if (o->chunk > AEG_MAX_CHUNK)
        return aeg_fail(err, AEGIS_E_USAGE, "chunk: %u tokens, expected 1 to %d", o->chunk, AEG_MAX_CHUNK);
    s->chunk = AEG_MIN(o->chunk, s->n_ctx);
    if (o->n_checkpoints > MAX_CHECKPOINTS)
        return aeg_fail(err, AEGIS_E_USAGE, "checkpoints: %u, expected 0 to %d", o->n_checkpoints, MAX_CHECKPOINTS);
    s->n_checkpoints = o->n_checkpoints;
    if (o->prefetch < -1 || o->prefetch > (int32_t)hp->n_experts)
        return aeg_fail(err, AEGIS_E_USAGE, "prefetch: %d experts, expected 0 to %u or auto", o->prefetch, hp->n_experts);
    s->prefetch = o->prefetch;
    return AEGIS_OK;
}

aegis_status aeg_settings_resolve(aeg_settings *s, const aegis_options *o, const aeg_store *store, aegis_error *err)
{
    static const aeg_act_kind acts[] = { [AEGIS_ACTIVATIONS_INT8] = AEG_ACT_I8, [AEGIS_ACTIVATIONS_INT16] = AEG_ACT_I16,
                                         [AEGIS_ACTIVATIONS_F32] = AEG_ACT_F32 };
    static const aeg_io_kind ios[] = { [AEGIS_IO_AUTO] = AEG_IO_AUTO, [AEGIS_IO_URING] = AEG_IO_URING,
                                       [AEGIS_IO_PREAD] = AEG_IO_PREAD, [AEGIS_IO_NULL] = AEG_IO_NULL,
                                       [AEGIS_IO_SIM] = AEG_IO_SIM };
    static const aeg_kv_kind kvs[] = { [AEGIS_KV_F32] = AEG_KV_F32, [AEGIS_KV_F16] = AEG_KV_F16,
                                       [AEGIS_KV_Q8] = AEG_KV_Q8, [AEGIS_KV_T4] = AEG_KV_T4, [AEGIS_KV_T3] = AEG_KV_T3 };
    *s = (aeg_settings){ 0 };
    if ((unsigned)o->activations >= AEG_ARRAY_LEN(acts) || (unsigned)o->io >= AEG_ARRAY_LEN(ios) ||
        (unsigned)o->kv >= AEG_ARRAY_LEN(kvs))
        return aeg_fail(err, AEGIS_E_USAGE, "an option has a value outside its enumeration");
    AEG_TRY(resolve_cpu(s, o, err));
    AEG_TRY(resolve_sizes(s, o, &store->hparams, err));
    s->act = acts[o->activations];
    s->io = ios[o->io];
    s->kv = kvs[o->kv];
    s->sim_bytes_per_s = o->sim_bytes_per_s;
    s->sim_latency_s = o->sim_latency_s;
    s->measured = o->measured;

    s->budget = o->memory_bytes;
    aeg_machine_memory machine;
    if (s->budget == 0 && aeg_machine_memory_now(&machine)) {
        /* On a machine with little room the reserve may not take more than half of it. */
        const uint64_t leave = AEG_MIN(LEAVE_FREE, machine.available_bytes / 2);
        s->budget = machine.available_bytes - leave;
    }
    if (s->budget == 0)
        return aeg_fail(err, AEGIS_E_USAGE, "the memory of this machine cannot be read; name a budget with --memory");
    return AEGIS_OK;
}
