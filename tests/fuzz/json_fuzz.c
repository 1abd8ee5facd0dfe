/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes through the JSON entry and its getters: an error or a value, never more memory than the ceiling. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/size.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    aegis_error err;
    json_t *value = NULL;
    aeg_json_init();
    const uint64_t before = aeg_json_memory()->in_use;
    const aegis_status status = aeg_json_parse(&value, (const char *)data, n, "input", AEGIS_E_MODEL, &err);
    if (status == AEGIS_OK) {
        uint32_t u = 0;
        uint64_t size = 0;
        double d = 0;
        const char *s = NULL;
        const json_t *inner = NULL;
        aeg_json_get_u32(value, "a", "input", 1, 9, &u, &err);
        aeg_json_get_f64(value, "a", "input", &d, &err);
        aeg_json_get_array(value, "a", "input", &inner, &err);
        aeg_json_get_object(value, "a", "input", &inner, &err);
        if (aeg_json_get_string(value, "a", "input", &s, &err) == AEGIS_OK)
            aeg_size_parse(&size, s, 1000, &err);
        json_decref(value);
    } else if (err.message[0] == '\0') {
        abort(); /* a failure without a sentence */
    }
    if (aeg_json_memory()->in_use != before)
        abort();
    return 0;
}
