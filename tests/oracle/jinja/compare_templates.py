#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every template of tests/data/templates and the demo model's, with every conversation, with and without tools, generation
prompt and thinking: Python's Jinja2 (set up as Hugging Face does) and ours must agree byte for byte,
or both refuse; where the template raises, the words must be the same.

    compare_templates.py RENDER [TEMPLATE ...]        --dump FILE writes the requests and texts for
                                                      compare_npm.mjs"""
import argparse
import glob
import itertools
import json
import os
import sys

from transformers_env import Renderer, environment, python_render

TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "Current weather\nfor a place",
        "parameters": {"type": "object", "properties": {
            "city": {"type": "string", "description": "name, e.g. \"Köln\" <b>&c</b>"},
            "days": {"type": "integer", "enum": [1, 2, 3]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "deep": {"type": "object", "properties": {"x": {"type": ["number", "null"]}}, "required": ["x"]}},
            "required": ["city"]}}},
    {"type": "function", "function": {"name": "ping", "description": "", "parameters": {}}},
]


def call(name, arguments, id="abcdef123"):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def user(content):
    return {"role": "user", "content": content}


def assistant(content, **more):
    return {"role": "assistant", "content": content, **more}


SYSTEM = {"role": "system", "content": "You are  terse.\n"}
ARGUMENTS = {"city": "São Paulo", "days": 2, "ok": True, "no": None, "f": 1.0, "e": 1e-7, "big": 12345678901234,
             "tags": ["a", "ü", 3], "deep": {"x": None, "q": "\"\\\n"}}
CONVERSATIONS = {
    "none": [],
    "one": [user("Hi")],
    "spaces": [user("  \n Hi \t ")],
    "system": [SYSTEM, user("Hi")],
    "empty system": [{"role": "system", "content": ""}, user("Hi")],
    "only system": [SYSTEM],
    "turns": [user("a"), assistant("b"), user("c")],
    "four turns": [SYSTEM, user("a"), assistant("b\n"), user("c"), assistant("")],
    "unicode": [user("日本語 \u00a0é 😀 <|im_end|> {{ x }} \u2028"), assistant("ß\u0000\x7f"), user("Ω")],
    "thinking in text": [user("a"), assistant("<think>\nwhy\n</think>\n\nb"), user("c"), assistant("<think>x</think>y</think>z")],
    "thinking apart": [user("a"), assistant("b", reasoning_content="\nwhy not\n"), user("c"),
                       assistant("d", reasoning_content="because")],
    "thinking not text": [user("a"), assistant("b", reasoning_content=None), assistant("b", reasoning_content=["x"])],
    "call": [user("w?"), assistant("", tool_calls=[call("get_weather", ARGUMENTS)]),
             {"role": "tool", "content": "sunny", "tool_call_id": "abcdef123"}],
    "call and text": [SYSTEM, user("w?"), assistant("Let me see.", tool_calls=[call("get_weather", {"city": "X"})]),
                      {"role": "tool", "content": "{\"t\": 20}", "tool_call_id": "abcdef123"}, assistant("20"), user("ok")],
    "null content": [user("w?"), assistant(None, tool_calls=[call("ping", {})]),
                     {"role": "tool", "content": "pong", "tool_call_id": "x"}, assistant("done")],
    "two calls": [user("w?"), assistant("a", tool_calls=[call("ping", {}), call("get_weather", {"days": 1})]),
                  {"role": "tool", "content": "1", "tool_call_id": "x"}, {"role": "tool", "content": "2", "tool_call_id": "y"},
                  user("and?")],
    "bare call": [user("x"), assistant(None, tool_calls=[{"name": "ping", "arguments": {"a": [1, 2]}, "type": None}])],
    "text arguments": [user("x"), assistant("", tool_calls=[call("ping", "{\"a\": 1}")])],
    "short id": [user("x"), assistant(None, tool_calls=[call("ping", {}, id="a")])],
    "empty calls": [user("x"), assistant("y", tool_calls=[]), user("z")],
    "null calls": [user("x"), assistant("y", tool_calls=None), user("z")],
    "parts": [user([{"type": "text", "text": "see "}, {"type": "image"}, {"type": "text", "text": " this"}])],
    "image url": [user([{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "?"}]), assistant("a"),
                  user([{"type": "image", "image": "y"}, {"type": "text", "text": "again"}])],
    "image in system": [{"role": "system", "content": [{"type": "image"}]}, user("a")],
    "odd part": [user([{"type": "audio"}])],
    "tool first": [{"role": "tool", "content": "x", "tool_call_id": "1"}, user("a")],
    "tool response by user": [user("q"), assistant("a"), user("<tool_response>\nx\n</tool_response>")],
    "tool result as object": [user("q"), {"role": "tool", "content": {"content": [1, {"a": "é"}]}, "tool_call_id": "1"}],
    "late system": [user("a"), SYSTEM, user("b")],
    "unknown role": [user("a"), {"role": "critic", "content": "no"}],
    "number content": [user(5)],
    "null user": [user(None), assistant(None)],
    "no content": [{"role": "user"}],
    "two users": [user("a"), user("b")],
    "float content": [user("a"), assistant("b", tool_calls=[call("f", {"x": 0.1, "y": 1e16, "z": -0.0})])],
}
SETTINGS = [
    dict(zip(("tools", "add_generation_prompt", "enable_thinking"), values))
    for values in itertools.product((None, TOOLS), (True, False), ("unset", True, False))
]
EXTRAS = [{}, {"preserve_thinking": True, "keep_thoughts": True, "number_images": True, "tools_with_user": False,
               "today": "1 Jan 2000", "my_tools": TOOLS[1:]}]


def requests():
    for (name, messages), settings, extra in itertools.product(CONVERSATIONS.items(), SETTINGS, EXTRAS):
        variables = {"messages": messages, "documents": None, "bos_token": "<s>", "eos_token": "</s>", **settings, **extra}
        if variables["enable_thinking"] == "unset":
            del variables["enable_thinking"]
        yield name, variables


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    p = argparse.ArgumentParser()
    p.add_argument("render")
    p.add_argument("templates", nargs="*")
    p.add_argument("--dump")
    args = p.parse_args()
    paths = args.templates or sorted(glob.glob(os.path.join(here, "../../data/templates/*.jinja"))) + \
        [os.path.join(here, "../../../models/demo/chat_template.jinja")]
    env, ours = environment(), Renderer(args.render)
    texts = errors = bad = 0
    dump = open(args.dump, "w", encoding="utf-8") if args.dump else None
    for path in paths:
        source = open(path, encoding="utf-8").read()
        for name, variables in requests():
            text, error = python_render(env, source, variables)
            our_text, our_error = ours.render(source, variables)
            words = error.split(": ", 1)[1] if error and error.startswith("TemplateError") else None
            if text != our_text or (words is not None and words != our_error):
                bad += 1
                if bad < 10:
                    print(f"--- {path}: {name} {({k: v for k, v in variables.items() if k not in ('messages', 'tools')})}\n"
                          f"python {text!r} {error}\nours   {our_text!r} {our_error}")
            texts += text is not None
            errors += text is None
            if dump:
                dump.write(json.dumps({"path": path, "name": name, "template": source, "variables": variables,
                                       "text": our_text}) + "\n")
    ours.close()
    print(f"{len(paths)} templates: {texts} texts and {errors} refusals compared, {bad} differ")
    sys.exit(bad != 0 or texts < 1000)


if __name__ == "__main__":
    main()
