/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8, normal forms and pre-tokenizer patterns, without a vocabulary. */
#include <string.h>

#include "base/utf8.h"
#include "support/t.h"
#include "text/normalize.h"
#include "text/pretokenize.h"

static aegis_error err;

/* ---- UTF-8 ---- */

/* The table of Unicode 15, section 3.9: maximal broken parts, each one U+FFFD. */
static void utf8_repairs_each_maximal_broken_part(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } cases[] = {
        { "a\x80z", "a\xEF\xBF\xBDz" },
        { "\xC0\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD" },                         /* overlong */
        { "\xE0\x80\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD" },
        { "\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD" },         /* a surrogate */
        { "\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD" }, /* above U+10FFFF */
        { "\xE1\x80\xE2\xF0\x91\x92\xF1\xBF" "A", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD" "A" },
        { "\xF0\x9F\x98", "\xEF\xBF\xBD" },                                 /* cut short */
        { "\xF4\x8F\xBF\xBF\xED\x9F\xBF", "\xF4\x8F\xBF\xBF\xED\x9F\xBF" }, /* the last ones that are right */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint8_t out[64];
        const size_t n = aeg_utf8_repair(out, (const uint8_t *)cases[i].in, strlen(cases[i].in));
        assert_int_equal(n, strlen(cases[i].out));
        assert_memory_equal(out, cases[i].out, n);
        assert_int_equal(aeg_utf8_valid(out, n), n);
    }
}

static void utf8_writes_and_reads_every_scalar_value(void **state)
{
    (void)state;
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        if (code == 0xD800)
            code = 0xE000;
        uint8_t out[4];
        uint32_t back = 0, length = 0;
        const uint32_t n = aeg_utf8_put(out, code);
        T_CHECK(aeg_utf8_step(out, n, &back, &length) == AEG_UTF8_OK && back == code && length == n);
        T_CHECK(aeg_utf8_get(out, &length) == code && length == n);
        T_CHECK(n == 1 || aeg_utf8_step(out, n - 1, &back, &length) == AEG_UTF8_SHORT);
    }
}

/* ---- normal forms ---- */

static uint64_t fnv(uint64_t h, const uint8_t *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ s[i]) * 0x100000001B3u;
    return h;
}

/* Every character that Unicode 13 and 17 agree on, between an 'a' and two marks in the wrong order and before
 * itself. The sums were computed by Python's unicodedata 14 and, equal, by JavaScript's normalize() of Unicode 17. */
static uint64_t sum_of_form(aeg_normal_form form)
{
    static const uint32_t ranges[][2] = {
        { 0xA0, 0x896 },     { 0x898, 0xCCF },    { 0xD00, 0xEC7 },     { 0xED0, 0x1ABF },     { 0x1B80, 0xA7BF },
        { 0xA800, 0xD7FF },  { 0xE000, 0xFFFF },  { 0x11080, 0x110FF }, { 0x1D150, 0x1D1FF },  { 0x2F800, 0x2FA1F },
    };
    T_MEMORY(memory);
    uint64_t h = 0xCBF29CE484222325u;
    for (size_t r = 0; r < sizeof(ranges) / sizeof(ranges[0]); r++)
        for (uint32_t code = ranges[r][0]; code <= ranges[r][1]; code++) {
            uint8_t text[16] = "a", *out = NULL;
            size_t n = 1, out_n = 0;
            n += aeg_utf8_put(text + n, code);
            memcpy(text + n, "\xCC\xA3\xCC\x81", 4);
            n += 4;
            n += aeg_utf8_put(text + n, code);
            T_OK(aeg_normalize(text, n, form, &out, &out_n, &memory, &err), &err);
            h = fnv(h, out, out_n);
            aeg_free(&memory, out);
        }
    t_no_leak(&memory);
    return h;
}

static void normal_forms_equal_two_other_implementations(void **state)
{
    (void)state;
    assert_true(sum_of_form(AEG_NORMAL_NFC) == 0xB78E37AC1A25A74Du);
    assert_true(sum_of_form(AEG_NORMAL_NFKC) == 0xFB05D52BB4756BDDu);
}

static bool normalizes_to(const char *in, const char *want)
{
    T_MEMORY(memory);
    uint8_t *out = NULL;
    size_t n = 0;
    T_OK(aeg_normalize((const uint8_t *)in, strlen(in), AEG_NORMAL_NFC, &out, &n, &memory, &err), &err);
    const bool same = n == strlen(want) && memcmp(out, want, n) == 0;
    aeg_free(&memory, out);
    t_no_leak(&memory);
    return same;
}

static void nfc_composes_hangul_and_keeps_what_only_looks_like_a_final(void **state)
{
    (void)state;
    assert_true(normalizes_to("\u1112\u1161\u11AB", "\uD55C"));
    assert_true(normalizes_to("\uD558\u11AB", "\uD55C"));
    assert_true(normalizes_to("\uD558\u11A7", "\uD558\u11A7"));
    assert_true(normalizes_to("\uD55C\u11A7x", "\uD55C\u11A7x"));
}

/* What the quick check calls normal must be, whatever surrounds it. */
T_PROPERTY(quick_check_never_passes_text_that_changes, 3000)
{
    static const uint32_t pool[] = { 'a', 'e', 0xE9, 0x1EA1, 0x300, 0x301, 0x323, 0x345, 0x1112, 0x1161, 0x11A7, 0x11AB, 0xD558,
                                     0xAC00, 0x9C7, 0x9BE, 0x1025, 0x102E, 0x212B, 0x340, 0xF73, 0x2126, 0x1D15E, 0x2F800, 0xFB1D };
    T_MEMORY(memory);
    uint8_t text[256], *out = NULL, *again = NULL;
    size_t n = 0, out_n = 0, again_n = 0;
    for (uint64_t k = t_below(12); k-- > 0;)
        n += aeg_utf8_put(text + n, pool[t_below(sizeof(pool) / sizeof(pool[0]))]);
    T_OK(aeg_normalize(text, n, AEG_NORMAL_NFC, &out, &out_n, &memory, &err), &err);
    T_OK(aeg_normalize(out, out_n, AEG_NORMAL_NFC, &again, &again_n, &memory, &err), &err);
    T_CHECK(out_n == again_n && (out_n == 0 || memcmp(out, again, out_n) == 0));
    if (aeg_normal_quick(text, n, AEG_NORMAL_NFC))
        T_CHECK(out_n == n && (n == 0 || memcmp(out, text, n) == 0));
    aeg_free(&memory, out);
    aeg_free(&memory, again);
    t_no_leak(&memory);
}

/* utf8proc alone needs hours for this: its sort is quadratic. */
static void a_megabyte_of_marks_in_a_bad_order_is_quick(void **state)
{
    (void)state;
    T_MEMORY(memory);
    const size_t n = 1 << 20;
    uint8_t *text = aeg_malloc(&memory, n), *out = NULL;
    size_t out_n = 0;
    for (size_t i = 0; i < n; i += 2)
        memcpy(text + i, i < n / 2 ? "\xCC\x81" : "\xCC\xA3", 2); /* class 230, then class 220 */
    T_OK(aeg_normalize(text, n, AEG_NORMAL_NFC, &out, &out_n, &memory, &err), &err);
    assert_int_equal(out_n, n);
    assert_memory_equal(out, "\xCC\xA3", 2);
    assert_memory_equal(out + n - 2, "\xCC\x81", 2);
    aeg_free(&memory, out);
    aeg_free(&memory, text);
    t_no_leak(&memory);
}

/* ---- patterns ---- */

#define QWEN                                                                                                     \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" \
    "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

typedef struct {
    char text[512];
    size_t n, n_pieces, longest, bytes;
} joined;

static aegis_status join(void *ctx, const uint8_t *piece, size_t n, aegis_error *e)
{
    (void)e;
    joined *j = ctx;
    if (j->n_pieces++ > 0 && j->n < sizeof(j->text))
        j->text[j->n++] = '|';
    for (size_t i = 0; i < n && j->n < sizeof(j->text); i++)
        j->text[j->n++] = (char)piece[i];
    if (n > j->longest)
        j->longest = n;
    j->bytes += n;
    return AEGIS_OK;
}

static joined cut(const aeg_pretok_pattern *patterns, uint32_t n_patterns, const char *text, size_t n, bool jit)
{
    T_MEMORY(memory);
    joined j = { .n = 0 };
    aeg_pretok *p = NULL;
    aeg_pretok_run *run = NULL;
    T_OK(aeg_pretok_open(&p, patterns, n_patterns, &memory, &err), &err);
    if (!jit)
        aeg_pretok_no_jit(p);
    T_OK(aeg_pretok_begin(&run, p, &err), &err);
    T_OK(aeg_pretok_split(p, run, (const uint8_t *)text, n, join, &j, &err), &err);
    aeg_pretok_end(p, run);
    aeg_pretok_close(p);
    t_no_leak(&memory);
    return j;
}

static aeg_pretok_pattern pattern(const char *text)
{
    return (aeg_pretok_pattern){ .text = text, .n = (uint32_t)strlen(text) };
}

static void assert_cut(const aeg_pretok_pattern *patterns, uint32_t n_patterns, const char *text, const char *want)
{
    for (int jit = 0; jit < 2; jit++) {
        const joined j = cut(patterns, n_patterns, text, strlen(text), jit);
        assert_int_equal(j.n, strlen(want));
        assert_memory_equal(j.text, want, j.n);
    }
}

static void the_qwen_pattern_cuts_as_its_rules_say(void **state)
{
    (void)state;
    const aeg_pretok_pattern p = pattern(QWEN);
    assert_cut(&p, 1, "Hello world  x", "Hello| world| | x");
    assert_cut(&p, 1, "it's WE'LL", "it|'s| WE|'LL");
    assert_cut(&p, 1, "a12 3", "a|1|2| |3");
    assert_cut(&p, 1, "x  \n\n  y  ", "x|  \n\n| | y|  ");
    assert_cut(&p, 1, "(a+b)!?\r\n ok", "(a|+b|)!?\r\n| ok");
    assert_cut(&p, 1, "e\u0301te\u0301 \u0e17\u0e35\u0e48", "e\u0301te\u0301| \u0e17\u0e35\u0e48");
    /* White_Space, not PCRE2's own \s: U+0085 is one, U+180E is none (and belongs to no word). */
    assert_cut(&p, 1, "a\xC2\x85\u00a0b", "a|\xC2\x85|\u00a0b");
    assert_cut(&p, 1, "a \u180e\u180e\u00a7", "a| \u180e\u180e\u00a7");
}

static void patterns_in_sequence_cut_what_the_one_before_left(void **state)
{
    (void)state;
    const aeg_pretok_pattern three[] = { pattern("\\p{N}{1,3}"), pattern("[\u4e00-\u9fa5]+"), pattern(" ?\\p{L}+|\\s+$") };
    assert_cut(three, 3, "ab12345\u4eca\u5929 cd, e  ", "ab|123|45|\u4eca\u5929| cd|,| e|  ");
    /* Gaps dropped: what no match covers is gone. */
    aeg_pretok_pattern words = pattern("\\p{L}+");
    words.drop_gaps = true;
    assert_cut(&words, 1, "ab, cd!", "ab|cd");
    assert_cut(NULL, 0, "ab, cd!", "ab, cd!");
}

static void a_script_is_not_its_extensions(void **state)
{
    (void)state;
    const aeg_pretok_pattern han = pattern("\\p{Han}+");
    assert_cut(&han, 1, "x\u4eca\u3001\u5929", "x|\u4eca|\u3001|\u5929"); /* U+3001 is Common, used with Han */
}

static void twenty_megabytes_of_spaces_are_one_match_less_a_space(void **state)
{
    (void)state;
    T_MEMORY(memory);
    const size_t n = 20000000;
    char *text = aeg_malloc(&memory, n + 1);
    memset(text, ' ', n);
    text[n] = 'x';
    const aeg_pretok_pattern p = pattern(QWEN);
    for (int jit = 0; jit < 2; jit++) {
        const joined j = cut(&p, 1, text, n + 1, jit);
        assert_int_equal(j.n_pieces, 2);
        assert_int_equal(j.longest, n - 1);
        assert_int_equal(j.bytes, n + 1);
    }
    aeg_free(&memory, text);
}

static void patterns_that_are_not_understood_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *part;
    } cases[] = {
        { "a\\w", "'\\w'" },           { "[a&&b]", "intersection" },   { "[a[b]]", "class inside" },
        { "(*NO_JIT)a", "group" },     { "(?<x>a)", "group" },         { "(?i)a", "group" },
        { "\\p{L", "unfinished" },     { "\\pL", "braces" },           { "\\x{110000000}", "character code" },
        { "\\", "backslash" },         { "[abc", "unfinished class" }, { "[]a]", "empty class" },
        { "a{,3}", "minimum" },        { "a{1,3}+", "counted" },       { "\\1", "'\\1'" },
        { "\\p{Nonsense}", "unknown property" }, { "(a", "parenthes" }, { "\\h", "'\\h'" },
        { "\\p{Latin=x}", "not understood" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        T_MEMORY(memory);
        aeg_pretok *p = NULL;
        const aeg_pretok_pattern one = pattern(cases[i].pattern);
        T_FAILS(aeg_pretok_open(&p, &one, 1, &memory, &err), &err, AEGIS_E_MODEL, cases[i].part);
        t_no_leak(&memory);
    }
}

/* An error after a bounded time, not a hang: 2^30 steps are seconds. */
static void a_pattern_of_exponential_cost_ends_in_an_error(void **state)
{
    (void)state;
    if (T_SANITIZED)
        return;
    T_MEMORY(memory);
    aeg_pretok *p = NULL;
    aeg_pretok_run *run = NULL;
    joined j = { .n = 0 };
    const aeg_pretok_pattern hostile = pattern("(?:a+)+b|(?:a|a)+c");
    T_OK(aeg_pretok_open(&p, &hostile, 1, &memory, &err), &err);
    T_OK(aeg_pretok_begin(&run, p, &err), &err);
    const char *text = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabb"
                       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaad";
    T_FAILS(aeg_pretok_split(p, run, (const uint8_t *)text, strlen(text), join, &j, &err), &err, AEGIS_E_RUNTIME, "limit");
    aeg_pretok_end(p, run);
    aeg_pretok_close(p);
    t_no_leak(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utf8_repairs_each_maximal_broken_part),
        cmocka_unit_test(utf8_writes_and_reads_every_scalar_value),
        cmocka_unit_test(normal_forms_equal_two_other_implementations),
        cmocka_unit_test(nfc_composes_hangul_and_keeps_what_only_looks_like_a_final),
        cmocka_unit_test(quick_check_never_passes_text_that_changes),
        cmocka_unit_test(a_megabyte_of_marks_in_a_bad_order_is_quick),
        cmocka_unit_test(the_qwen_pattern_cuts_as_its_rules_say),
        cmocka_unit_test(patterns_in_sequence_cut_what_the_one_before_left),
        cmocka_unit_test(a_script_is_not_its_extensions),
        cmocka_unit_test(twenty_megabytes_of_spaces_are_one_match_less_a_space),
        cmocka_unit_test(patterns_that_are_not_understood_are_named),
        cmocka_unit_test(a_pattern_of_exponential_cost_ends_in_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
