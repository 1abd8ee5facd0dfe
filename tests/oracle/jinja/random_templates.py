#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random small templates, rendered by Python's Jinja2 and by ours: same text, or an error from both.

    random_templates.py RENDER [--count N] [--seed S]

Differences we chose are listed in `chosen()`, each with its reason."""
import argparse
import random
import re
import sys

from transformers_env import Renderer, environment, python_render

VARIABLES = {
    "s": "Hello, wörld", "t": "  a b\tc \n", "e": "", "u": "ÀÉ日本語ß", "n": 7, "m": -3, "f": 2.5, "z": 0,
    "yes": True, "no": False, "nil": None,
    "l": [3, 1, 2], "ls": ["b", "A", "c", "a"], "ll": [[1, 2], [3, 4]], "el": [],
    "d": {"a": 1, "b": "two", "items": 3}, "ed": {},
    "msgs": [{"role": "user", "content": "hi", "n": 2}, {"role": "assistant", "content": None, "n": 1},
             {"role": "tool", "content": "<x>", "extra": [1, {"k": "v"}], "n": 3}],
}
STRINGS = ["''", "'a'", "'b'", "'Hello'", "'a,b,c'", "' x '", "'é'", "'日本'", "'\\n'", "\"it's\"", "'%s'", "'ab' 'c'",
           "'A b-c'", "'x\\ty'", "'12'", "'-4.5'", "'1e3'", "'<a&\"b\">'", "'ΑΣ'", "'a\\u00e9b'", "'l1\\nl2\\n\\nl3'"]
NUMBERS = ["0", "1", "2", "3", "-1", "10", "7", "2.5", "-0.5", "1e3", "1.0", "0.1", "100", "1_000", "0x1f", "1e20", "3.14159"]
TEXT_FILTERS = ["upper", "lower", "capitalize", "title", "trim", "length", "string", "list", "e", "first", "last",
                "reverse", "int", "float", "wordcount", "trim('a')", "replace('a', 'bb')", "replace('l', '', 1)",
                "default('d')", "indent", "indent(2, true)", "indent('>', blank=true)", "tojson", "safe", "join('-')",
                "int(5)", "int(base=16)", "float(1.5)", "sort|join", "unique|join", "count", "d(1, true)", "forceescape"]
NUMBER_FILTERS = ["abs", "int", "float", "round", "round(1)", "round(1, 'floor')", "round(0, 'ceil')", "string", "tojson",
                  "round(-1)", "default(3)", "round(2)"]
LIST_FILTERS = ["length", "first", "last", "list", "reverse|list", "sort", "sort(reverse=true)", "join", "join(', ')",
                "unique|list", "min", "max", "sum", "tojson", "tojson(indent=2)", "map('string')|list",
                "map('upper')|join('.')", "select|list", "reject|list", "select('string')|list", "string",
                "select('odd')|list", "map(attribute='role')|list", "selectattr('content')|list",
                "selectattr('role', 'equalto', 'user')|map(attribute='content')|join",
                "rejectattr('extra', 'defined')|list|length", "sort(attribute='n')|map(attribute='n')|list",
                "batch(2)|list", "batch(2, 'x')|list", "sum(attribute='n')", "join('/', attribute='role')",
                "map(attribute='extra', default='q')|list", "map('length')|list", "select('>', 1)|list",
                "reject('in', [1, 'a'])|list", "sort(case_sensitive=true)|join", "max(attribute='n')", "map('int')|sum"]
DICT_FILTERS = ["length", "list", "items|list", "dictsort", "dictsort(by='value')", "tojson", "string", "first", "last",
                "tojson(indent=4)", "join(',')", "dictsort(reverse=true)", "tojson(sort_keys=true)",
                "tojson(separators=(',', ':'))", "tojson(ensure_ascii=true)", "sort"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "iterable",
         "sequence", "callable", "true", "false", "odd", "even", "lower", "upper", "divisibleby 3", "equalto 1", "eq(2)",
         "ne 'a'", "lt 3", "gt 1", "in [1, 2, 'a']", "sameas none", "escaped", "ge 2", "le(2)"]
METHODS = ["upper()", "lower()", "title()", "capitalize()", "strip()", "lstrip()", "rstrip('c \\n')", "split()", "split(',')",
           "split('l', 1)", "rsplit(' ', 1)", "rsplit(none, 1)", "split(none, 1)", "startswith('H')", "endswith(('d', 'c'))", "replace('a', 'x')",
           "find('l')", "rfind('l')", "count('a')", "splitlines()", "splitlines(true)", "isdigit()", "isalpha()",
           "join(['1', '2'])", "index('l')", "partition(',')", "rpartition('l')", "zfill(8)", "center(9)", "ljust(7, '.')",
           "rjust(7)", "isspace()", "isupper()", "islower()", "isalnum()", "removeprefix('He')", "removesuffix('c')",
           "find('l', 3)", "count('l', 2, 5)", "startswith('l', 2)", "format(1, 'b')", "find('')", "count('')",
           "replace('', '-')", "strip('Hd')", "find('z', 20)", "isnumeric()", "isdecimal()", "lstrip(none)"]


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def any(self, depth):
        return self.r.choice([self.text, self.number, self.list, self.dict, self.boolean, self.odd])(depth - 1)

    def leaf(self):
        return self.r.choice(list(VARIABLES) + ["nope", "none", "True", "false"] + STRINGS + NUMBERS)

    def text(self, depth):
        r = self.r
        if depth <= 0:
            return r.choice(STRINGS + ["s", "t", "e", "u"])
        return r.choice([
            lambda: f"({self.text(depth - 1)} + {self.text(depth - 1)})",
            lambda: f"{self.any(depth - 1)} ~ {self.any(depth - 1)}",
            lambda: f"({self.text(depth - 1)})|{r.choice(TEXT_FILTERS)}",
            lambda: f"({self.text(depth - 1)}).{r.choice(METHODS)}",
            lambda: f"({self.text(depth - 1)}){self.subscript()}",
            lambda: f"({self.text(depth - 1)} if {self.boolean(depth - 1)} else {self.text(depth - 1)})",
            lambda: f"({self.text(depth - 1)} * {r.choice(NUMBERS)})",
            lambda: f"'%s-%d|%5.2f' % ({self.any(depth - 1)}, {self.number(depth - 1)}, {self.number(depth - 1)})",
            lambda: f"{self.any(depth - 1)}|string",
            lambda: f"({self.any(depth - 1)})|tojson",
        ])()

    def number(self, depth):
        r = self.r
        if depth <= 0:
            return r.choice(NUMBERS + ["n", "m", "f", "z"])
        op = r.choice(["+", "-", "*", "/", "//", "%", "**"])
        return r.choice([
            lambda: f"({self.number(depth - 1)} {op} {self.number(depth - 1)})",
            lambda: f"{self.number(depth - 1)} {op} {self.number(depth - 1)}",
            lambda: f"-{self.number(depth - 1)}",
            lambda: f"({self.number(depth - 1)})|{r.choice(NUMBER_FILTERS)}",
            lambda: f"{self.list(depth - 1)}|length",
        ])()

    def boolean(self, depth):
        r = self.r
        if depth <= 0:
            return r.choice(["yes", "no", "true", "none", "s", "el"])
        cmp = r.choice(["==", "!=", "<", "<=", ">", ">=", "in", "not in"])
        return r.choice([
            lambda: f"{self.any(depth - 1)} {cmp} {self.any(depth - 1)}",
            lambda: f"{self.number(depth - 1)} {cmp} {self.number(depth - 1)} < {self.number(depth - 1)}",
            lambda: f"{self.any(depth - 1)} in {self.r.choice([self.list, self.text, self.dict])(depth - 1)}",
            lambda: f"not {self.any(depth - 1)}",
            lambda: f"{self.any(depth - 1)} {r.choice(['and', 'or'])} {self.any(depth - 1)}",
            lambda: f"({self.any(depth - 1)}) is {r.choice(['', 'not '])}{r.choice(TESTS)}",
            lambda: f"{self.leaf()} is {r.choice(TESTS)}",
        ])()

    def subscript(self):
        r = self.r
        i = lambda: r.choice(["", "0", "1", "-1", "2", "-2", "5", "none"])
        return r.choice([f"[{r.choice(['0', '1', '-1', '9'])}]", f"[{i()}:{i()}]", f"[{i()}:{i()}:{r.choice(['-1', '2', '-2', '1'])}]"])

    def list(self, depth):
        r = self.r
        if depth <= 0:
            return r.choice(["l", "ls", "ll", "el", "msgs", "[]", "[1, 'a']", "(1, 2)", "range(3)", "d.items()|list"])
        return r.choice([
            lambda: "[" + ", ".join(self.any(depth - 1) for _ in range(r.randrange(4))) + "]",
            lambda: "(" + "".join(self.any(depth - 1) + ", " for _ in range(r.randrange(1, 4))) + ")",
            lambda: f"({self.list(depth - 1)} + {self.list(depth - 1)})",
            lambda: f"({self.list(depth - 1)})|{r.choice(LIST_FILTERS)}",
            lambda: f"({self.list(depth - 1)}){self.subscript()}",
            lambda: f"range({r.choice(NUMBERS)}, {r.choice(NUMBERS)})",
            lambda: f"{self.text(depth - 1)}|list",
            lambda: f"{self.list(depth - 1)} * 2",
        ])()

    def dict(self, depth):
        r = self.r
        if depth <= 0:
            return r.choice(["d", "ed", "{}", "{'k': 1}", "msgs[0]", "dict(a=1)", "msgs[2]"])
        key = lambda: r.choice(STRINGS[:6] + ["1", "none", "true", "1.0", "(1, 2)"])
        return r.choice([
            lambda: "{" + ", ".join(f"{key()}: {self.any(depth - 1)}" for _ in range(r.randrange(3))) + "}",
            lambda: f"({self.dict(depth - 1)})|{r.choice(DICT_FILTERS)}",
            lambda: f"({self.dict(depth - 1)}).get({key()}, {self.any(depth - 1)})",
            lambda: f"({self.dict(depth - 1)}).{r.choice(['keys()', 'values()', 'items()'])}|list",
            lambda: f"({self.dict(depth - 1)})[{key()}]",
            lambda: f"({self.dict(depth - 1)}).{r.choice(['a', 'b', 'items', 'zz', 'role'])}",
            lambda: f"dict({self.dict(depth - 1)}, x={self.any(depth - 1)})",
        ])()

    def odd(self, depth):
        r = self.r
        if depth <= 0:
            return self.leaf()
        return r.choice([
            lambda: f"({self.any(depth - 1)})|{r.choice(TEXT_FILTERS + LIST_FILTERS + NUMBER_FILTERS + DICT_FILTERS)}",
            lambda: f"({self.any(depth - 1)}).{r.choice(METHODS)}",
            lambda: f"({self.any(depth - 1)}){self.subscript()}",
            lambda: f"({self.any(depth - 1)} if {self.boolean(depth - 1)})",
            lambda: f"{self.any(depth - 1)} {r.choice(['+', '-', '*', '/', '%', '~'])} {self.any(depth - 1)}",
        ])()

    def statement(self, depth):
        r = self.r
        dash = lambda: r.choice(["", "", "-", "+"])
        a, b = dash(), dash()
        open_, close = "{%" + a, b.replace("+", r.choice(["", "+"])) + "%}"
        body = lambda: self.body(depth - 1)
        space = lambda: r.choice(["", " ", "\n", "\n  ", "  \n", "\n\n"])
        name = r.choice(["x", "y", "s", "ns.v"])
        return r.choice([
            lambda: "{{" + r.choice(["", "-"]) + " " + self.any(depth) + " " + r.choice(["", "-"]) + "}}",
            lambda: f"{open_} if {self.boolean(depth)} {close}{body()}{open_} elif {self.boolean(depth)} {close}{body()}{open_} else {close}{body()}{open_} endif {close}",
            lambda: f"{open_} for x in {self.list(depth)} {close}{space()}{{{{ x }}}}{{{{ loop.{r.choice(['index', 'index0', 'first', 'last', 'length', 'revindex', 'revindex0', 'previtem', 'nextitem'])} }}}}{body()}{open_} else {close}none{open_} endfor {close}",
            lambda: f"{open_} for k, v in {self.dict(depth)}.items() {close}{{{{ k }}}}={{{{ v }}}};{body()}{open_} endfor {close}",
            lambda: f"{open_} for x in {self.list(depth)} if {r.choice(['x', 'x is string', 'x is not none', 'loop is defined'])} {close}{{{{ x }}}}{r.choice(['', '{% if loop.index > 1 %}{% break %}{% endif %}', '{% continue %}'])}{body()}{open_} endfor {close}",
            lambda: f"{open_} set {name} = {self.any(depth)} {close}{{{{ {name} }}}}",
            lambda: f"{open_} set {r.choice(['x', 'y'])}{r.choice(['', ' | upper', ' | trim | length'])} {close}{body()}{open_} endset {close}{{{{ x }}}}",
            lambda: f"{open_} set x, y = {self.any(depth)}, {self.any(depth)} {close}{{{{ x ~ y }}}}",
            lambda: f"{open_} macro mac(p, q={self.any(depth - 1)}) {close}[{{{{ p }}}}{body()}{{{{ q }}}}]{open_} endmacro {close}{{{{ mac({self.any(depth - 1)}) }}}}{{{{ mac(q=1, p=s) }}}}",
            lambda: f"{open_} macro w() {close}<{{{{ caller({self.any(depth - 1)}) }}}}>{open_} endmacro {close}{open_} call(p) w() {close}{{{{ p }}}}{body()}{open_} endcall {close}",
            lambda: f"{open_} filter {r.choice(['upper', 'trim', 'indent(2)', 'title'])} {close}{body()}{open_} endfilter {close}",
            lambda: f"{open_} raw {close}{{{{ x }}}} {{% if %}}{space()}{open_} endraw {close}",
            lambda: f"{{#{a} comment {{{{ x }}}} {b}#}}",
            lambda: f"{open_} with x = {self.any(depth)}, y = x {close}{{{{ x }}}}{body()}{open_} endwith {close}",
            lambda: f"{open_} generation {close}{body()}{open_} endgeneration {close}",
            lambda: f"{open_} print {self.any(depth)} {close}",
        ])()

    def body(self, depth):
        r = self.r
        out = ""
        for _ in range(r.randrange(1, 3) if depth > 0 else 1):
            out += r.choice(["", "text", " ", "\n", "\n  ", "a\n", "  \n\tb ", "x  "])
            out += self.statement(depth - 1) if depth > 0 else "{{ x }}"
            out += r.choice(["", "\n", " ", "end\n", "\n\n"])
        return out

    def template(self):
        if self.r.random() < 0.6:
            return "{{ " + self.any(self.r.randrange(1, 5)) + " }}"
        return "{% set ns = namespace(v=1) %}" + self.body(self.r.randrange(1, 4)) + self.body(1) + "{{ x }}{{ ns.v }}"


def text_of_constant_slice(our_error, theirs):
    return theirs is not None and our_error and re.search(r"a '(int|float|bool|NoneType|dict)' cannot be sliced", our_error)


def chosen(template, ours, theirs, our_error, their_error):
    """A known difference, or None."""
    if our_error and "64 bits" in our_error or our_error and "64-bit" in our_error:
        return "integers are 64 bits"
    if our_error and "not real" in our_error:
        return "no complex numbers"
    if our_error and "is not supported" in our_error:
        return "refused by name"
    if our_error and ("steps" in our_error or "memory" in our_error or "longer than" in our_error):
        return "a limit"
    if theirs and re.search(r" at 0x[0-9a-f]+>|<bound method", theirs, re.IGNORECASE):
        return "what Python prints of functions"
    if "**" in template and "-" in template and ours is not None and theirs is not None:
        return "Jinja2 writes a folded negative base into Python without brackets"
    if text_of_constant_slice(our_error, theirs):
        return "a slice of a constant number is folded to undefined by Jinja2's optimizer"
    if their_error and "is not safely callable" in their_error or their_error and "unsafe" in their_error:
        return "lists may grow"
    return None


def main():
    p = argparse.ArgumentParser()
    p.add_argument("render")
    p.add_argument("--count", type=int, default=20000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--show", type=int, default=20)
    args = p.parse_args()
    env, ours = environment(), Renderer(args.render)
    both = errors = known = bad = 0
    for i in range(args.count):
        template = Maker(args.seed * 1000003 + i).template()
        if re.search(r"\*\*.*\*\*|1e20.*\*\*|\*\* *\(?1(00|_000|e3)|\* 1_000.*\* 1_000", template):
            continue  # numbers of thousands of digits are slow in Python
        text, error = python_render(env, template, VARIABLES)
        our_text, our_error = ours.render(template, VARIABLES)
        if text == our_text and text is not None:
            both += 1
        elif text is None and our_text is None:
            errors += 1
        elif chosen(template, our_text, text, our_error, error):
            known += 1
        else:
            bad += 1
            if bad <= args.show:
                print(f"--- {i}\n{template!r}\npython {text!r} {error}\nours   {our_text!r} {our_error}")
    ours.close()
    print(f"{both} equal, {errors} errors in both, {known} chosen differences, {bad} wrong")
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
