/* SPDX-License-Identifier: Apache-2.0 */
/* The helpers that other tests trust. */
#include "support/t.h"

#include <string.h>
#include <unistd.h>

#include "support/t_tensors.h"

static void golden_numbers_are_read(void **state)
{
    (void)state;
    t_tensors *g = t_tensors_open("tests/data/demo-golden-mlx4.safetensors");
    const t_tensor *ids = t_tensors_get(g, "%s.ids", "capital"), *logits = t_tensors_get(g, "capital.logits");
    assert_string_equal(ids->dtype, "I32");
    assert_int_equal(ids->n_dims, 1);
    assert_int_equal(logits->n_dims, 2);
    assert_int_equal(logits->dim[0], 4);
    assert_int_equal(logits->dim[1], 6144);
    for (uint64_t i = 0; i < ids->n_elements; i++)
        assert_in_range(t_tensor_i64(ids, i), 0, 6143);
    /* The first greedy token is the argmax of the last position's logits, by the golden's margin. */
    uint64_t best = 0;
    const uint64_t last = 3 * 6144;
    for (uint64_t i = 1; i < 6144; i++)
        if (t_tensor_f32(logits, last + i) > t_tensor_f32(logits, last + best))
            best = i;
    float second = -1e30f;
    for (uint64_t i = 0; i < 6144; i++)
        if (i != best && t_tensor_f32(logits, last + i) > second)
            second = t_tensor_f32(logits, last + i);
    assert_int_equal(best, t_tensor_i64(t_tensors_get(g, "capital.greedy"), 0));
    const float margin = t_tensor_f32(t_tensors_get(g, "capital.margin"), 0);
    assert_true(margin - (t_tensor_f32(logits, last + best) - second) < 1e-3f);
    assert_false(t_tensors_has(g, "img1.0.ids"));
    t_tensors_close(g);
}

static void half_floats_are_read(void **state)
{
    (void)state;
    t_tensors *g = t_tensors_open("tests/data/demo-eval512-mlx4.safetensors");
    const t_tensor *logits = t_tensors_get(g, "logits");
    assert_string_equal(logits->dtype, "F16");
    double sum = 0;
    for (uint64_t i = 0; i < 6144; i++) {
        const float v = t_tensor_f32(logits, i);
        T_CHECK(v > -100 && v < 100);
        sum += v;
    }
    assert_true(sum != 0);
    t_tensors_close(g);
}

static void random_numbers_are_spread(void **state)
{
    (void)state;
    double sum = 0, squares = 0;
    uint32_t low = 0;
    for (int i = 0; i < 20000; i++) {
        const double v = (double)t_normal();
        sum += v;
        squares += v * v;
        low += t_below(10) < 5;
        const uint64_t b = t_between(3, 5);
        T_CHECK(b >= 3 && b <= 5);
    }
    assert_true(sum / 20000 > -0.05 && sum / 20000 < 0.05);
    assert_true(squares / 20000 > 0.95 && squares / 20000 < 1.05);
    assert_in_range(low, 9500, 10500);
}

static void folders_are_new_and_empty(void **state)
{
    (void)state;
    const char *a = t_folder(), *b = t_folder();
    assert_string_not_equal(a, b);
    t_write_file(t_path(a, "x"), "abc", 3);
    size_t n = 0;
    char *text = t_read_file(t_path(a, "x"), &n);
    assert_int_equal(n, 3);
    assert_string_equal(text, "abc");
    t_free(text);
    assert_int_equal(access(t_path(b, "x"), F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_numbers_are_read),
        cmocka_unit_test(half_floats_are_read),
        cmocka_unit_test(random_numbers_are_spread),
        cmocka_unit_test(folders_are_new_and_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
