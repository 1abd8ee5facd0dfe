/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_filters.h - built-ins that several files need. */
#ifndef AEG_TEXT_JINJA_FILTERS_H
#define AEG_TEXT_JINJA_FILTERS_H

#include "text/jinja_run.h"

/* jinja_format.c: "..." % value; "...".format(...) */
bool aeg_jin_percent(aeg_jrun *r, const aeg_jval *format, const aeg_jval *value, aeg_jval *out);
aeg_jfn aeg_jm_format;
aeg_jfn aeg_jf_format;

/* jinja_casing_ops.c: upper, lower, title, capitalize of str(v) */
typedef enum { AEG_JCASE_UPPER, AEG_JCASE_LOWER, AEG_JCASE_CAPITALIZE, AEG_JCASE_TITLE,
               AEG_JCASE_JINJA_TITLE } aeg_jcase;
bool aeg_jin_case(aeg_jrun *r, const aeg_jval *v, aeg_jcase how, aeg_jval *out);

/* &, <, >, ' and " as entities; the result is marked safe. A safe string stays as it is. */
bool aeg_jin_escape(aeg_jrun *r, const aeg_jval *v, aeg_jval *out);

/* Every occurrence of `from` (up to `count`; negative: all), as str.replace. */
bool aeg_jin_replace(aeg_jrun *r, const aeg_jval *v, const aeg_jval *from, const aeg_jval *to, int64_t count,
                     aeg_jval *out);
/* Both ends (1 left, 2 right, 3 both) without whitespace, or without the characters of `chars`. */
bool aeg_jin_strip(aeg_jrun *r, const aeg_jval *v, const aeg_jval *chars, int sides, aeg_jval *out);
bool aeg_jin_splitlines(aeg_jrun *r, const aeg_jval *v, bool keep_ends, aeg_jval *out);

/* jinja_tojson.c */
aeg_jfn aeg_jf_tojson;

/* The tables of filters, by file. Each ends with an empty name. */
extern const aeg_jbuiltin aeg_jf_text_table[], aeg_jf_number_table[], aeg_jf_list_table[], aeg_jf_select_table[];
extern const aeg_jbuiltin aeg_jm_string_table[], aeg_jm_strip_table[], aeg_jm_list_table[], aeg_jm_dict_table[];

#endif
