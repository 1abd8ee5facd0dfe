/* SPDX-License-Identifier: Apache-2.0 */
/* A data table: every option and command of the program. --help, completion, suggestions and parsing read it. */
#include <limits.h>
#include <string.h>

#include "base/checked.h"
#include "options.h"

#define C(name) (1u << AEG_CMD_##name)
#define GENERATE (C(RUN) | C(CHAT))
#define ENGINE (GENERATE | C(PLAN) | C(LOGITS) | C(EVAL) | C(BENCH))
#define MODEL (ENGINE | C(TOKENIZE) | C(TEMPLATE) | C(SHOW))
#define ALL (~0u)
#define AT(field) offsetof(aeg_cli, field)
#define COMMON AEG_OPT_COMMON
#define ENV AEG_OPT_ENV

/* names, kind, meta, help, commands, marks, offset, min, max, choices, later */
const aeg_option aeg_option_table[] = {
    { "-m --model", AEG_OPT_TEXT, "MODEL", "store, model folder as published, or GGUF file", MODEL | C(VERIFY) | C(DOCTOR), 0, AT(model), 0, 0, 0, 0 },
    { "-p --prompt", AEG_OPT_TEXT, "TEXT", "the prompt; - reads standard input", C(RUN) | C(TOKENIZE) | C(LOGITS), COMMON, AT(prompt), 0, 0, 0, 0 },
    { "-f --prompt-file --file", AEG_OPT_TEXT, "FILE", "read the text from a file", C(RUN) | C(TOKENIZE) | C(TEMPLATE) | C(LOGITS) | C(EVAL), COMMON, AT(file), 0, 0, 0, 0 },
    { "-sys --system --system-prompt", AEG_OPT_TEXT, "TEXT", "system prompt", GENERATE, COMMON, AT(system), 0, 0, 0, 0 },
    { "--raw", AEG_OPT_FLAG, 0, "feed the text as it is, without the chat template", C(RUN), COMMON, AT(raw), 0, 0, 0, 0 },
    { "--think", AEG_OPT_SET, 0, "let the model think before it answers", GENERATE | C(TEMPLATE), COMMON, AT(think), 1, 1, 0, 0 },
    { "--nothink --no-think", AEG_OPT_SET, 0, "ask for an answer without thinking", GENERATE | C(TEMPLATE), COMMON, AT(think), 0, 0, 0, 0 },
    { "-n --predict --n-predict --tokens --max-tokens", AEG_OPT_COUNT, "N", "most tokens to generate (default: until the context is full)", GENERATE, COMMON, AT(n_predict), -1, UINT_MAX, 0, 0 },

    { "--memory", AEG_OPT_SIZE, "SIZE", "hard budget of the whole process: 4GiB, 512MiB, 50% (default: what is free less 1 GiB)", MODEL | C(PACK), COMMON | ENV, AT(memory), 0, 0, 0, 0 },
    { "-c --ctx --max-kv-size --ctx-size", AEG_OPT_COUNT, "N", "context length in tokens (default 4096)", ENGINE, COMMON | ENV, AT(n_ctx), 0, 1 << 26, 0, 0 },
    { "-t --threads", AEG_OPT_COUNT, "N|auto", "threads (default: auto, all cores; decoding with as many of them as measure fastest)", ENGINE | C(DOCTOR) | C(PACK), COMMON | ENV, AT(threads), 0, 256, 0, 0 },
    { "--cpu-mask", AEG_OPT_CHOICE, "LEVEL", "instruction set (default: the best there is)", ENGINE, ENV, AT(cpu), 0, 0, "auto|scalar|avx2|avx512|neon", 0 },
    { "--activations", AEG_OPT_CHOICE, "TYPE", "what weights are multiplied with (default int8)", ENGINE, ENV, AT(activations), 0, 0, "int8|int16|f32", 0 },
    { "-ctk -ctv --kv-type", AEG_OPT_CHOICE, "TYPE", "type of stored keys and values (default f32)", ENGINE, ENV, AT(kv), 0, 0, "f32|f16|q8|t4|t3", "q8_0|q4_0|bf16" },
    { "--io", AEG_OPT_CHOICE, "HOW", "how experts are read", ENGINE | C(DOCTOR), ENV, AT(io), 0, 0, "auto|uring|pread|null|sim", 0 },
    { "--sim-disk", AEG_OPT_DISK, "RATE[,US]", "simulate a disk: bytes per second, and a latency, such as 7GB/s or 7GB/s,80us", ENGINE, 0, AT(sim_bytes_per_s), 0, 0, 0, 0 },
    { "--sim-latency", AEG_OPT_REAL, "US", "with --sim-disk: microseconds per read", ENGINE, 0, AT(sim_latency_us), 0, 1e9, 0, 0 },
    { "--prefetch", AEG_OPT_AUTO, "N|auto|off", "experts read ahead by a guess, per layer", ENGINE, ENV, AT(prefetch), 0, 64, 0, 0 },
    { "--preload", AEG_OPT_FLAG, 0, "read all experts before the first token, if the budget holds them all", ENGINE & ~C(PLAN), ENV, AT(preload), 0, 0, 0, 0 },
    { "--chunk", AEG_OPT_COUNT, "N", "prompt tokens per step (default: chosen by the plan)", ENGINE, ENV, AT(chunk), 0, 4096, 0, 0 },
    { "--checkpoints", AEG_OPT_INT, "N", "saved states for re-using the beginning of a prompt", ENGINE, ENV, AT(checkpoints), 0, 64, 0, 0 },
    { "--telemetry", AEG_OPT_TEXT, "FILE", "write one JSON line per step and layer", ENGINE, 0, AT(telemetry), 0, 0, 0, 0 },
    { "--device", AEG_OPT_CHOICE, "DEVICE", "where to compute", ENGINE, ENV, AT(device), 0, 0, "cpu", "cuda" },

    { "--temperature --temp", AEG_OPT_REAL, "T", "sampling temperature; 0 takes the likeliest token", GENERATE, COMMON, AT(temperature), 0, 100, 0, 0 },
    { "--top-k", AEG_OPT_INT, "K", "sample from the K likeliest tokens; 0: all", GENERATE, COMMON, AT(top_k), 0, INT_MAX, 0, 0 },
    { "--top-p", AEG_OPT_REAL, "P", "sample from the likeliest tokens that hold P of the probability", GENERATE, COMMON, AT(top_p), 0, 1, 0, 0 },
    { "--min-p", AEG_OPT_REAL, "P", "drop tokens less likely than P times the likeliest", GENERATE, 0, AT(min_p), 0, 1, 0, 0 },
    { "--repeat-penalty", AEG_OPT_REAL, "X", "penalty for repeated tokens; 1: off", GENERATE, 0, AT(repeat_penalty), 0.01, 100, 0, 0 },
    { "--presence-penalty", AEG_OPT_REAL, "X", "subtracted once from tokens seen before", GENERATE, 0, AT(presence_penalty), -100, 100, 0, 0 },
    { "--frequency-penalty", AEG_OPT_REAL, "X", "subtracted per occurrence", GENERATE, 0, AT(frequency_penalty), -100, 100, 0, 0 },
    { "--repeat-last-n", AEG_OPT_COUNT, "N", "tokens the penalties look back at (default 64)", GENERATE, 0, AT(repeat_last_n), 0, UINT_MAX, 0, 0 },
    { "-s --seed", AEG_OPT_SEED, "S", "64-bit seed; -1 draws one", GENERATE, COMMON, 0, 0, 0, 0, 0 },
    { "--logit-bias", AEG_OPT_BIAS, "ID=BIAS", "add BIAS to a token's logit; -inf bans it (repeatable)", GENERATE, 0, 0, 0, 0, 0, 0 },
    { "--stop", AEG_OPT_STOP, "TEXT", "end the answer before this text (repeatable)", GENERATE, 0, 0, 0, 0, 0, 0 },
    { "--ignore-eos", AEG_OPT_FLAG, 0, "go on after the end-of-answer token", GENERATE, 0, AT(ignore_eos), 0, 0, 0, 0 },
    { "--no-history", AEG_OPT_FLAG, 0, "chat: keep no history file", GENERATE, ENV, AT(no_history), 0, 0, 0, 0 },

    { "--experts --expert-bits", AEG_OPT_BITS, "B|keep", "bits of expert weights when packing", MODEL | C(PACK), COMMON, AT(expert_bits), 0, 0, 0, 0 },
    { "--dense-bits", AEG_OPT_BITS, "B|keep", "bits of all other weights when packing", MODEL | C(PACK), COMMON, AT(dense_bits), 0, 0, 0, 0 },
    { "--tokenizer", AEG_OPT_TEXT, "DIR", "folder with tokenizer.json or tokenizer.model, when packing", MODEL | C(PACK), 0, AT(tokenizer), 0, 0, 0, 0 },

    { "--ids", AEG_OPT_TEXT, "1,2,3", "token ids instead of text", C(LOGITS) | C(EVAL), COMMON, AT(ids), 0, 0, 0, 0 },
    { "--ids-file", AEG_OPT_TEXT, "FILE", "token ids as a JSON array or separated by spaces", C(LOGITS) | C(EVAL), COMMON, AT(ids_file), 0, 0, 0, 0 },
    { "--last", AEG_OPT_COUNT, "N", "logits of the last N positions only (default: all)", C(LOGITS), COMMON, AT(last), 1, UINT_MAX, 0, 0 },
    { "--hidden", AEG_OPT_FLAG, 0, "write the residual stream after each layer too", C(LOGITS), COMMON, AT(hidden), 0, 0, 0, 0 },
    { "--router", AEG_OPT_FLAG, 0, "write the chosen experts too", C(LOGITS), COMMON, AT(router), 0, 0, 0, 0 },
    { "-o --output", AEG_OPT_TEXT, "FILE", "the safetensors file to write", C(LOGITS), COMMON, AT(output), 0, 0, 0, 0 },
    { "--skip", AEG_OPT_COUNT, "K", "leave the first K targets of each window out", C(EVAL), COMMON, AT(skip), 0, UINT_MAX, 0, 0 },
    { "--ref", AEG_OPT_TEXT, "FILE", "compare with the logits of a safetensors file: kl, top1", C(EVAL), COMMON, AT(ref), 0, 0, 0, 0 },
    { "-pp --pp", AEG_OPT_COUNT, "N", "prompt tokens (default 512)", C(BENCH), COMMON, AT(pp), 1, 1 << 26, 0, 0 },
    { "-tg --tg", AEG_OPT_COUNT, "N", "tokens to generate (default 64)", C(BENCH), COMMON, AT(tg), 1, 1 << 26, 0, 0 },
    { "-r --repeats", AEG_OPT_COUNT, "N", "repetitions (default 3)", C(BENCH), COMMON, AT(repeats), 1, 64, 0, 0 },
    { "--tokens", AEG_OPT_CHOICE, "HOW", "tokens of a repetition: drawn at temperature 1 with its own seed, likeliest, or any", C(BENCH), COMMON, AT(bench_tokens), 0, 0, "sampled|greedy|random", 0 },
    { "-s --seed", AEG_OPT_SEED, "S", "seed of the first repetition, one more for each next (default 1)", C(BENCH), COMMON, 0, 0, 0, 0, 0 },
    { "--ab", AEG_OPT_TEXT, "OPTIONS", "compare with these options over the others: A B A B ...", C(BENCH), COMMON, AT(ab), 0, 0, 0, 0 },
    { "--csv", AEG_OPT_FLAG, 0, "print one header line and one line per run and summary", C(BENCH), COMMON, AT(csv), 0, 0, 0, 0 },
    { "--record-routes", AEG_OPT_TEXT, "FILE", "record the experts that each token chooses", C(BENCH), 0, AT(record_routes), 0, 0, 0, 0 },
    { "--text", AEG_OPT_TEXT, "FILE", "with --record-routes: of this text, token by token, instead of an answer", C(BENCH), 0, AT(text_file), 0, 0, 0, 0 },
    { "--replay", AEG_OPT_TEXT, "FILE", "hit rates of cache policies on recorded routes", C(BENCH), 0, AT(replay), 0, 0, 0, 0 },
    { "--save-curve", AEG_OPT_FLAG, 0, "with --replay: keep the hit rates of the policy in use in the store", C(BENCH), 0, AT(save_curve), 0, 0, 0, 0 },
    { "--tools", AEG_OPT_TEXT, "FILE", "JSON array of tools", C(TEMPLATE), COMMON, AT(tools), 0, 0, 0, 0 },
    { "--no-generation-prompt", AEG_OPT_FLAG, 0, "end after the last message", C(TEMPLATE), 0, AT(no_generation_prompt), 0, 0, 0, 0 },
    { "--all", AEG_OPT_FLAG, 0, "every store", C(CACHE), COMMON, AT(all), 0, 0, 0, 0 },

    { "--json", AEG_OPT_FLAG, 0, "print one JSON object", ALL, COMMON, AT(json), 0, 0, 0, 0 },
    { "-v --verbose", AEG_OPT_FLAG, 0, "say what is chosen; figures after the answer", ALL, COMMON | ENV, AT(verbose), 0, 0, 0, 0 },
    { "--color", AEG_OPT_CHOICE, "WHEN", "colours", ALL, 0, AT(color), 0, 0, "auto|always|never", 0 },
    { "--no-color", AEG_OPT_SET, 0, "no colours", ALL, 0, AT(color), AEG_COLOR_NEVER, 0, 0, 0 },
    { "-h", AEG_OPT_SET, 0, "help on one screen", ALL, 0, AT(help), AEG_HELP_SHORT, 0, 0, 0 },
    { "--help", AEG_OPT_SET, 0, "all options", ALL, COMMON, AT(help), AEG_HELP_FULL, 0, 0, 0 },

    /* Habits from other programs that need nothing here. */
    { "--mlock --no-mmap --jinja --no-display-prompt --simple-io -st --single-turn --no-warmup --log-colors", AEG_OPT_IGNORED, 0, 0, ENGINE, 0, 0, 0, 0, 0, 0 },
    { "-b --batch-size -ub --ubatch-size -tb --threads-batch -ngl --n-gpu-layers -fa --flash-attn --log-file", AEG_OPT_IGNORED_VALUE, "X", 0, ENGINE, 0, 0, 0, 0, 0, 0 },

    { "--image", AEG_OPT_LATER, "F", 0, ENGINE, 0, 0, 0, 0, 0, 0 },
    { "--mtp", AEG_OPT_LATER, "N", 0, ENGINE | C(PACK), 0, 0, 0, 0, 0, 0 },
    { "--mmproj", AEG_OPT_LATER, "F", 0, ENGINE | C(PACK), 0, 0, 0, 0, 0, 0 },
    { "--gpu-memory", AEG_OPT_LATER, "SIZE", 0, ENGINE, 0, 0, 0, 0, 0, 0 },
    { "--kv-dir", AEG_OPT_LATER, "DIR", 0, ENGINE, 0, 0, 0, 0, 0, 0 },
    { "-np --parallel", AEG_OPT_LATER, "N", 0, ENGINE, 0, 0, 0, 0, 0, 0 },
    { "-j --json-schema", AEG_OPT_LATER, "TEXT", 0, GENERATE, 0, 0, 0, 0, 0, 0 },
    { "--grammar --grammar-file", AEG_OPT_LATER, "TEXT", 0, GENERATE, 0, 0, 0, 0, 0, 0 },
    { "--chat-template --chat-template-file", AEG_OPT_LATER, "TEXT", 0, GENERATE, 0, 0, 0, 0, 0, 0 },
};
const size_t aeg_n_options = AEG_ARRAY_LEN(aeg_option_table);

const char *const aeg_later_commands[] = { "serve", "top", "ps", "config", NULL };

const aeg_command_info aeg_command_table[AEG_N_COMMANDS] = {
    [AEG_CMD_RUN] = { "run", "MODEL [-p TEXT]", "answer a prompt; without one on a terminal, chat",
        "  aegis run models/demo -p 'What is the capital of France?' --memory 64MiB\n"
        "  git diff | aegis run MODEL -sys 'Write a commit message.'\n"
        "  aegis -m MODEL -p 'Once upon a time' --raw -n 100 --temp 0\n", 0, 1 },
    [AEG_CMD_CHAT] = { "chat", "MODEL", "talk to the model; /help inside explains the commands",
        "  aegis chat models/demo --memory 64MiB\n"
        "  aegis chat MODEL -sys 'Answer in rhymes.' --think\n", 0, 1 },
    [AEG_CMD_PACK] = { "pack", "SRC DST", "turn a published model into a store",
        "  aegis pack ~/models/Qwen3.6-35B-A3B-4bit /data/qwen.store\n"
        "  aegis pack SRC DST --expert-bits 3\n", 2, 2 },
    [AEG_CMD_PLAN] = { "plan", "MODEL --memory SIZE", "show what a budget is spent on, without loading",
        "  aegis plan models/demo --memory 32MiB\n"
        "  aegis doctor MODEL && aegis plan MODEL --memory 4GiB     # with the speed to expect\n"
        "  aegis plan MODEL --memory 4GiB --sim-disk 7GB/s          # on a disk you do not have\n"
        "  aegis plan MODEL --memory 8GiB -c 32768 --json\n", 0, 1 },
    [AEG_CMD_SHOW] = { "show", "MODEL", "describe a store or a model folder",
        "  aegis show models/demo\n", 0, 1 },
    [AEG_CMD_VERIFY] = { "verify", "STORE", "re-hash a store and compare with its manifest",
        "  aegis verify /data/qwen.store\n", 0, 1 },
    [AEG_CMD_CACHE] = { "cache", "ls | rm KEY... | rm --all", "stores packed on first use",
        "  aegis cache ls\n"
        "  aegis cache rm demo-0123456789abcdef\n", 1, AEG_CLI_MAX_ARGS },
    [AEG_CMD_TOKENIZE] = { "tokenize", "MODEL (-p TEXT | -f FILE)", "token ids of a text",
        "  aegis tokenize models/demo -p 'Hello'\n", 0, 1 },
    [AEG_CMD_TEMPLATE] = { "template", "MODEL -f MESSAGES.json", "the prompt that the chat template makes",
        "  echo '[{\"role\":\"user\",\"content\":\"Hi\"}]' | aegis template models/demo -f -\n", 0, 1 },
    [AEG_CMD_LOGITS] = { "logits", "MODEL (--ids 1,2,3 | --ids-file F | -p TEXT | -f FILE) -o OUT.safetensors",
        "evaluate tokens and write the logits",
        "  aegis logits models/demo -p 'Hello' --last 1 -o out.safetensors\n"
        "  aegis logits MODEL --ids 1,2,3 --hidden --router -o out.safetensors\n", 0, 1 },
    [AEG_CMD_EVAL] = { "eval", "MODEL (-f FILE | --ids-file FILE | --ref FILE)", "perplexity of a text, and distance to reference logits",
        "  aegis eval models/demo -f tests/data/eval.txt -c 512\n"
        "  aegis eval MODEL --ref reference.safetensors --json     # its own ids\n", 0, 1 },
    [AEG_CMD_BENCH] = { "bench", "MODEL", "measure prefill and decode",
        "  aegis bench models/demo --memory 32MiB -pp 512 -tg 64 -r 3     # docs/howto/measure.md explains the figures\n"
        "  aegis bench MODEL --record-routes R.routes --text answer.txt && aegis bench MODEL --replay R.routes --save-curve\n"
        "  aegis bench MODEL --memory 4GiB --prefetch off --ab '--prefetch auto'\n"
        "  aegis bench MODEL --memory 4GiB --sim-disk 7GB/s,80us --csv\n", 0, 1 },
    [AEG_CMD_DOCTOR] = { "doctor", "[MODEL|DIR]", "examine this machine: disk, memory, processor",
        "  aegis doctor MODEL               # the disk in reads of this model's size; kept for plan and bench\n"
        "  aegis doctor /data --json        # the largest file there, in reads of 1.69 MiB\n"
        "  aegis doctor                     # the same with a temporary file of 256 MiB in the cache folder\n", 0, 1 },
    [AEG_CMD_VERSION] = { "version", "", "version and commit", "", 0, 0 },
    [AEG_CMD_COMPLETION] = { "completion", "bash|zsh|fish", "print a completion script",
        "  source <(aegis completion bash)\n"
        "  aegis completion fish > ~/.config/fish/completions/aegis.fish\n", 1, 1 },
    [AEG_CMD_HELP] = { "help", "[COMMAND]", "explain a command", "", 0, 1 },
};

const char *aeg_option_name(const char **rest, size_t *n)
{
    const char *p = *rest;
    while (*p == ' ')
        p++;
    *n = strcspn(p, " ");
    *rest = p + *n;
    return *n == 0 ? NULL : p;
}

const aeg_option *aeg_option_find(const char *name, size_t n, uint32_t commands)
{
    const aeg_option *first = NULL;
    for (size_t i = 0; i < aeg_n_options; i++) {
        const char *rest = aeg_option_table[i].names, *known;
        size_t n_known;
        while ((known = aeg_option_name(&rest, &n_known)) != NULL)
            if (n_known == n && memcmp(known, name, n) == 0) {
                if (aeg_option_table[i].commands & commands)
                    return &aeg_option_table[i];
                first = first == NULL ? &aeg_option_table[i] : first;
            }
    }
    return first;
}

char *aeg_option_title(char out[AEG_OPTION_NAME_MAX], const aeg_option *option)
{
    const char *rest = option->names, *name;
    size_t n;
    out[0] = '\0';
    while ((name = aeg_option_name(&rest, &n)) != NULL)
        if (n < AEG_OPTION_NAME_MAX) {
            memcpy(out, name, n);
            out[n] = '\0';
        }
    return out;
}
