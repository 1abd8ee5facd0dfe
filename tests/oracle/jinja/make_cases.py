#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/templates/cases.json: small templates and what Python's Jinja2 makes of them, for
tests/unit/jinja_test.c. A template that Python refuses becomes a row with "error".

    make_cases.py          compare the file with Python's answers now
    make_cases.py --write  write it"""
import json
import os
import sys

from transformers_env import environment, python_render

V = {"s": "Hello, wörld", "t": "  a b\tc \n", "e": "", "n": 7, "m": -3, "f": 2.5, "z": 0, "yes": True, "no": False,
     "nil": None, "l": [3, 1, 2], "w": ["b", "A", "c", "a"], "d": {"a": 1, "b": "two", "items": 3},
     "msgs": [{"role": "user", "content": "hi", "n": 2}, {"role": "assistant", "content": None, "n": 1},
              {"role": "tool", "content": "<x>", "extra": [1, {"k": "v"}], "n": 3}]}

EXPRESSIONS = """
1 + 2 * 3
(1 + 2) * 3
7 // 2, -7 // 2, 7 // -2, 7.5 // 2
7 % 3, -7 % 3, 7 % -3, -7.5 % 2
2 ** 3 ** 2
-2 ** 2
2 ** -1
1 / 4, 4 / 2, 1e3, 1e16, 1e15, 0.1 + 0.2, 1e-5, 123456789.125
1_000 + 0x1f + 0o17 + 0b11
1 ~ 2 + 3
1 ~ 2 * 3
'a' ~ 1.0 ~ none ~ true ~ [1, 'x'] ~ nope
'a' 'b' "c"
"\\n\\t\\x41\\u00e9\\U0001f600\\101\\q"
'it\\'s'
-n|abs
-(n|abs)
not 1 == 2
not not 3
1 < 2 < 3, 1 < 3 < 2, 1 < 2 > 1
1 == 1.0, true == 1, 'a' == 'a', [1] == [1], [1] == (1,), {} == {}
'ell' in s, 'x' not in s, 1 in l, 'a' in d, 3 in (1, 2)
none == false, none is none, nope == nope2
n or 1, z or 'x', z and 1, n and 'y', none or 0 or ''
'a' if yes else 'b'
'a' if no
('a' if no) is undefined
1 if no else 2 if no else 3
yes and not no or no
n > 3 and n < 10
true, True, false, False, none, None
[1, 'a', 2.0, none, true, [], {}, ()]
(1,)
()
{'a': 1, 2: 'b', none: [1], 1.5: (1, 2)}
"it's" , 'say "x"', 'both \\' and "'
['é', '\\n', '\\u200b', '\\x7f', '\\u2028', '😀']
s[0], s[-1], s[7:], s[:5], s[::-1], s[1:8:3], s[-4:-1], s[20:], s[5:2]
l[0], l[-1], l[1:], l[::-1], l[::2], l[5] is undefined, l[-9:2], l[none:none:-2]
msgs[0].role, msgs[0]['role'], msgs[2].extra[1].k, msgs[0].nothing is defined
d.a, d['items'], d.items is callable, d.nothing, d['nothing'] is undefined
msgs[-1]['extra'][0], msgs[::-1][0].role
'%s and %d, %5.2f|%-5s|%05d|%x|%%' % ('a', 3, 2.345, 'b', 42, 255)
'%(x)s-%(y)r' % {'x': 1, 'y': 'z'}
'%s' % 5, '%s' % [1], '%r' % 'x', '%c%c' % ('a', 98)
'ab' * 3, [1, 2] * 2, 2 * 'x', 'a' * -1
[1] + [2], (1,) + (2,), 'a' + 'b'
range(5)|list, range(2, 8, 3)|list, range(5, 0, -2)|list, range(3), range(0)|length
s|upper, s|lower, s|title, s|capitalize, 'ß'|upper, 'ΑΣ'|lower, 'ǆ'|title
'foo bar-baz (qux) it\\'s'|title, 'foo bar-baz (qux) it\\'s'.title()
t|trim, '[' ~ t|trim ~ ']', 'xxaxx'|trim('x'), '\\u3000a\\xa0\\x1f'|trim
s|length, 'é😀'|length, l|length, d|count, ''|length, nope|length
s|replace('l', 'L'), s|replace('l', 'L', 1), 'aaa'|replace('a', 'b', 2), 'ab'|replace('', '-')
l|join, l|join(', '), w|join('-'), [1, none, true, 2.0]|join('|'), msgs|join('/', attribute='role')
nope|default('x'), ''|default('x'), ''|default('x', true), none|d('x'), none|d('x', true), 0|default(boolean=true, default_value=5)
l|first, l|last, ''|first, []|last is undefined, s|first, s|last, d|first
l|list, 'abc'|list, d|list, (1, 2)|list
5|string, none|string, 1.0|string, [1]|string
'42'|int, '42.9'|int, 'x'|int, 'x'|int(7), '0x1f'|int(base=16), 3.99|int, -3.99|int, true|int, none|int(1), ' 12 '|int, '1_0'|int
'2.5'|float, 'x'|float, 'x'|float(1.5), 3|float, '1e3'|float, 'inf'|float, none|float
-3|abs, -2.5|abs, 3|abs
2.5|round, 3.5|round, 2.567|round(2), 2.1|round(method='ceil'), 2.9|round(0, 'floor'), 5|round, 1234|round(-2), -2.5|round, 0.05|round(1)
l|sort, w|sort, w|sort(case_sensitive=true), l|sort(reverse=true), msgs|sort(attribute='n')|map(attribute='n')|list
['b', 'B', 'a']|sort, [[2, 1], [1, 2]]|sort, [true, 0, 2.5]|sort
[1, 1, 2, 'a', 'A']|unique|list, w|unique(case_sensitive=true)|list, msgs|unique(attribute='role')|list|length
l|reverse|list, s|reverse, (1, 2)|reverse|list
w|map('upper')|list, msgs|map(attribute='role')|join(','), msgs|map(attribute='extra', default='-')|list, l|map('string')|map('length')|list
msgs|map(attribute='extra.1.k')|list, [[1, 2], [3, 4]]|map(attribute=0)|list, [[1, 2], [3, 4]]|map('join', '+')|list
l|select('odd')|list, l|reject('odd')|list, [0, 1, '', 'a']|select|list, [0, 1, none]|reject|list, l|select('>', 1)|list, l|select('in', [1, 9])|list
msgs|selectattr('content')|map(attribute='role')|list, msgs|selectattr('role', 'equalto', 'tool')|list|length, msgs|rejectattr('content', 'none')|list|length
msgs|selectattr('extra', 'defined')|first is mapping, msgs|rejectattr('extra', 'defined')|list|length
d|items|list, d.items()|list, d.keys()|list, d.values()|list, d|dictsort, {'b': 1, 'A': 2}|dictsort, {'a': 2, 'b': 1}|dictsort(by='value'), {'a': 1, 'b': 2}|dictsort(reverse=true)
d.items(), d.keys(), d.values()
'a\\nb\\n\\nc'|indent, 'a\\nb'|indent(2, true), 'a\\n\\nb'|indent(2, blank=true), 'a\\nb'|indent('>>'), ''|indent(first=true)
l|min, l|max, w|min, w|max, msgs|max(attribute='n') == msgs[2], []|min is undefined
l|sum, msgs|sum(attribute='n'), [[1], [2]]|sum(start=[]), [0.5, 1]|sum
'<a href="x">\\'&</a>'|e, ('<a>'|safe)|e, '<b>'|escape|escape, '<b>'|e|forceescape
('<a>'|safe) + '<b>', '<a>' + ('<b>'|safe), ('<a>'|safe) ~ '<b>'
[1, 2, 3, 4, 5]|batch(2)|list, [1, 2, 3]|batch(2, 'x')|list
'a bc, d-e_f'|wordcount, '%s-%s'|format(1, 2), '%(a)s'|format(a=1)
d|tojson, msgs|tojson, s|tojson, none|tojson, true|tojson, 1.0|tojson, 1e16|tojson, 'a"\\\\\\n\\x01\\x7f</é\\u2028😀'|tojson
[1, 2]|tojson(indent=2), d|tojson(indent=4), {}|tojson(indent=2), []|tojson(indent=2), {'a': [{'b': {}}]}|tojson(indent=1)
'é😀'|tojson(ensure_ascii=true), d|tojson(separators=(',', ':')), {'b': 1, 'a': 2}|tojson(sort_keys=true), {1: 2, none: 3, true: 4, 1.5: 5}|tojson, (1, 2)|tojson
d|tojson(indent=2, separators=(', ', ' = '))
n is defined, nope is defined, nope is undefined, nil is none, n is none, nil is defined
s is string, n is string, n is number, f is number, yes is number, n is integer, f is float, yes is integer, yes is boolean
d is mapping, l is mapping, l is iterable, s is iterable, n is iterable, d is iterable, nope is iterable
l is sequence, s is sequence, d is sequence, n is sequence, range(2) is sequence
yes is true, no is false, 1 is true, n is odd, n is even, 9 is divisibleby 3, 9 is divisibleby(2)
n is eq 7, n is equalto(7), n is ne 7, n is lt 8, n is le 7, n is gt 8, n is ge(7), n is in [1, 7], n is not in [1], 'a' is in 'abc'
n is sameas 7, nil is sameas none, l is sameas l, [] is sameas [], 1 is sameas true
'abc' is lower, 'ABC' is upper, 'aBc' is lower, '' is lower, 'é1' is lower
namespace is callable, s.upper is callable, n is callable, s is callable, range is callable
'upper' is filter, 'nope' is filter, 'odd' is test
n is not none, not n is none, n is not string and yes
s.upper(), s.lower(), s.title(), s.capitalize(), t.strip(), t.lstrip(), t.rstrip(), 'xxaxx'.strip('x'), 'abcba'.lstrip('ab'), 'abcba'.rstrip('ab')
'a,b,,c'.split(','), ' a  b '.split(), 'a b c'.split(' ', 1), 'a b c'.rsplit(' ', 1), ' a b  c '.split(none, 1), ' a b  c '.rsplit(none, 1), ''.split(), ''.split(',')
'<think>x</think>y'.split('</think>')[-1], 'abc'.split('b')[0], 'a<>b<>c'.split('<>', 1)
s.startswith('Hell'), s.endswith('ld'), s.startswith(('x', 'H')), s.endswith(('x', 'y')), s.startswith('l', 2), s.endswith('l', 0, 4)
s.replace('l', '_'), s.replace('l', '_', 1), 'aa'.replace('', '-'), 'é'.replace('é', 'e')
s.find('l'), s.find('l', 4), s.find('zz'), s.rfind('l'), s.index('w'), s.count('l'), 'aaa'.count('aa'), 'é😀x'.find('x'), 'ab'.count(''), ''.find('')
'-'.join(['a', 'b']), ''.join('abc'), ', '.join(d)
'a\\nb\\r\\nc\\n'.splitlines(), 'a\\nb\\n'.splitlines(true), ''.splitlines()
'12'.isdigit(), '1a'.isdigit(), ''.isdigit(), '²'.isdigit(), '²'.isdecimal(), '½'.isnumeric(), 'aé'.isalpha(), 'a1'.isalnum(), ' \\t'.isspace(), 'AB'.isupper(), 'ab'.islower()
'a=b=c'.partition('='), 'a=b=c'.rpartition('='), 'abc'.partition('='), 'abc'.rpartition('=')
'7'.zfill(3), '-7'.zfill(4), 'ab'.center(7, '*'), 'ab'.ljust(4) ~ '|', 'ab'.rjust(4)
'{} {1}'.format(1, 2)
'{} {} {{}}'.format('a', 2), '{0}{1}{0}'.format('x', 'y'), '{a}'.format(a=none)
'unhappy'.removeprefix('un'), 'cases'.removesuffix('s'), 'x'.removeprefix('y')
d.get('a'), d.get('zz'), d.get('zz', 5), msgs[0].get('content', 'x')
l.index(2), l.count(1), (1, 2, 1).count(1)
dict(a=1, b=2), dict({'x': 1}, y=2), dict([('k', 'v')])
strftime_now('%Y-%m-%d %H'), strftime_now('%d %b %Y'), strftime_now('')
l.0, msgs.0.role
[l, w][1][2], {'a': {'b': [1, 2]}}.a.b[1]
nope
nope.x
nope.x.y
nope + 1
1 + 'a'
'a' + 1
nope()
n.foo
n.foo.bar
none.x
l['x']
d[[1]]
{[1]: 2}
1 / 0
1 % 0
l < 1
'a' < 1
s.nothing()
n()
'x'|tojson|safe
nope|tojson
range(200000)
l|join(',')|upper ~ '!'
raise_exception('no way')
raise_exception('line\\ntwo ' ~ n)
s.split('')
s.index('zz')
'%d' % 'x'
'%s %s' % 'x'
1 in 2
l[1:'a']
l[::0]
{'a': 1}.a, {'a': 1}['a'], {'a': {'items': 2}}.a['items']
"%s" | format(msgs[0].role) | upper
(msgs | selectattr('role', 'eq', 'user') | list)[0].content
msgs | map(attribute='role') | map('upper') | list | tojson
(1, 2) + (3,) | list
'a' in ['a'] and 'b' not in ['a']
n is defined and n
not nope and not none
'x' * 3 ~ '-' * 2
10 - 2 - 3, 2 * 3 % 4, 100 / 10 / 2
- 3 - -3, +n, -f
''|e ~ 'a'|e
(nope|default({})).x is defined
"a" if n > 5 and s is string else "b"
""".strip("\n").split("\n")

TEMPLATES = [
    "", "plain", "a\n", "a\n\n", "\n", "{{ n }}\n", "a\r\nb\rc\n", "é😀",
    "{% if yes %}\na\n{% endif %}\nb", "  {% if yes %}a{% endif %}  b", "x  {% if yes %} a {% endif %}", "\n  {% if yes %}\n  a\n  {% endif %}\n",
    "a {%- if yes -%} b {%- endif -%} c", "a {{- n -}} b", "a\n\n{%- if yes %}\n\n b{% endif %}", "a  {%+ if yes %}b{% endif +%}\nc",
    "  {%+ if yes %}b{%+ endif %}", "a {# c #} b", "a\n  {# c #}\nb", "a {#- c -#} b", "{# {{ x }} {% if %} #}z", "a{#\n\n#}\nb",
    "{% raw %}{{ x }}{% endraw %}", "{% raw -%} {{ x }} {%- endraw %} b", "a\n {% raw %}\n {% if %}\n {% endraw %}\n b",
    "{{ '{{' }} {{ '%}' }} {{ \"#}\" }}", "{{ {'a': {'b': 1}} }}", "{{ {'a': {}}}}", "{{- '  x  ' -}}", "{{ '\n' }}|",
    "{% if no %}1{% elif n == 7 %}2{% elif yes %}3{% else %}4{% endif %}", "{% if no %}1{% else %}2{% endif %}", "{% if nope %}1{% endif %}",
    "{% if n, %}t{% endif %}", "{% if yes: %}x{% endif %}",
    "{% for x in l %}{{ x }},{% endfor %}", "{% for x in [] %}a{% else %}none{% endfor %}", "{% for x in nope %}a{% else %}none{% endfor %}",
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}",
    "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }};{% endfor %}", "{% for x in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}", "{% for c in 'aé😀' %}[{{ c }}]{% endfor %}",
    "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for a, b in [(1,)] %}{% endfor %}", "{% for x in 5 %}{% endfor %}",
    "{% for x in l if x > 1 %}{{ loop.index }}:{{ x }}/{{ loop.length }} {% else %}no{% endfor %}", "{% for x in l if x > 9 %}{{ x }}{% else %}no{% endfor %}",
    "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in l %}{% continue %}{% else %}all skipped{% endfor %}", "{% for x in l %}{% for y in w %}{% if y == 'A' %}{% break %}{% endif %}{{ x }}{{ y }}{% endfor %};{% endfor %}",
    "{% for x in l %}{{ loop.cycle('a', 'b') }}{{ loop.changed(x > 1) }}{% endfor %}", "{% for x in 1, 2 %}{{ x }}{% endfor %}", "{% for x in (l if yes else w) %}{{ x }}{% endfor %}",
    "{% for x in l %}{% for y in l %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}", "{% break %}",
    "{% set x = 1 %}{% for i in l %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}", "{% set ns = namespace(x=1) %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace(found=false, n=none) %}{{ ns.found }}{{ ns.n }}{{ ns.zz is defined }}{{ ns }}", "{% set d.x = 1 %}", "{% set ns = namespace({'a': 1}) %}{{ ns.a }}{{ ns['a'] }}",
    "{% set a, b = 1, 2 %}{{ b }}{{ a }}", "{% set a = 1, 2 %}{{ a }}", "{% set a, b = [1] %}", "{% set (a, b) = 'xy' %}{{ a }}", "{% set n = 5 %}{{ n }}", "{% if yes %}{% set q = 1 %}{% endif %}{{ q }}",
    "{% set x %}a{{ n }}b{% endset %}{{ x }}{{ x|length }}", "{% set x | upper | trim %} a{{ n }} {% endset %}[{{ x }}]", "{% set x %}{% set y = 1 %}{% endset %}{{ y }}",
    "{% for i in l %}{{ s }}{% endfor %}{% set s = 1 %}{{ s }}", "{% macro m() %}{{ s }}{% endmacro %}{{ m() }}{% set s = 1 %}{{ m() }}", "{% for i in [1] %}{{ s }}{% endfor %}{% if yes %}{% set s = 1 %}{% endif %}{{ s }}",
    "{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=4, a=5) }}{{ m() }}", "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(zz=2) }}",
    "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, k=4) }}", "{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}in{{ n }}{% endcall %}", "{% macro m() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b) m() %}{{ b }}{{ a }}{% endcall %}", "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}",
    "{% macro f(n) %}{{ n if n < 2 else f(n - 1) ~ '.' ~ n }}{% endmacro %}{{ f(5) }}", "{% macro m() %} x {% endmacro %}[{{ m() | trim }}]", "{% macro m() %}{{ m.name }}{% endmacro %}{{ m() }}", "{% macro m(x) %}{% set x = x + 1 %}{{ x }}{% endmacro %}{{ m(1) }}{{ x }}",
    "{% filter upper %}a{{ s }}{% endfilter %}", "{% filter replace('a', 'b') | trim %} aa {% endfilter %}|", "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% with %}{% set z = 3 %}{{ z }}{% endwith %}{{ z }}",
    "{% generation %}a{{ n }}{% endgeneration %}b", "{% print n, s %}", "{% set j = joiner(', ') %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}", "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}",
    "{% for m in msgs[::-1] %}{{ loop.index0 }}{{ m.role }} {% endfor %}", "{% for m in msgs %}{{ m.content if m.content is string else '-' }}{% if not loop.last %}, {% endif %}{% endfor %}",
    "{% set g = l | map('string') %}{{ g | list }}{{ g | list }}", "{{ raise_exception('x') if no else 'fine' }}", "{% if yes %}{{ raise_exception('stop: ' + s) }}{% endif %}",
    "{{ loop }}", "{% set loop = 3 %}{{ loop }}", "{% for x in l %}{% set loop = 9 %}{{ loop }}{% endfor %}",
    "{{ x", "{% if %}", "{% if yes %}", "{% endif %}", "{{ 1 + }}", "{{ (1 }}", "{{ 'a }}", "{# x", "{% raw %}", "{% foo %}", "{{ a b }}", "{{ x | }}", "{{ x | nosuch }}", "{{ x is nosuch }}", "{{ f(a=1, 2) }}", "{% set 1 = 2 %}", "{% set true = 1 %}", "{{ x.1.y }}{{ }}", "{% for x %}{% endfor %}", "{% macro m(a=1, b) %}{% endmacro %}", "{% include 'x' %}", "{{ ] }}", "{{ @ }}", "{{ 'a' is string is string }}", "{% call n %}{% endcall %}", "{% else %}",
]


def rows(env):
    for template in ["{{ " + e + " }}" for e in EXPRESSIONS] + TEMPLATES:
        text, error = python_render(env, template, V)
        row = {"template": template}
        if text is not None:
            row["text"] = text
        else:
            row["error"] = error.split(": ", 1)[1] if error.startswith("TemplateError: ") else ""
        yield row


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../data/templates/cases.json")
    new = {"variables": V, "rows": list(rows(environment()))}
    text = '{"variables": ' + json.dumps(V, ensure_ascii=False) + ',\n"rows": [\n' + \
        ",\n".join(json.dumps(r, ensure_ascii=False) for r in new["rows"]) + "\n]}\n"
    if "--write" in sys.argv:
        open(path, "w", encoding="utf-8").write(text)
    elif json.load(open(path, encoding="utf-8")) != new:
        raise SystemExit("cases.json is not what Python's Jinja2 says: run make_cases.py --write and look at the change")
    print(len(new["rows"]), "rows,", sum("error" in r for r in new["rows"]), "of them refused")


if __name__ == "__main__":
    main()
