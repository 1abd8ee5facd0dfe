# SPDX-License-Identifier: Apache-2.0
"""Python's Jinja2 set up as Hugging Face's apply_chat_template does it, and our renderer beside it."""
import datetime
import json
import subprocess

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = 1700000000  # what strftime_now() shows on both sides


class Generation(jinja2.ext.Extension):
    """{% generation %} only marks text for training: its body is rendered as it is."""

    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(lineno)

    def _render(self, caller):
        return caller()


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def strftime_now(format):
        return datetime.datetime.fromtimestamp(NOW).strftime(format)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=[jinja2.ext.loopcontrols, Generation])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    return env


compiled = {}  # the last template, so that many conversations compile it once


def python_render(env, template, variables):
    """(text, None) or (None, error)."""
    try:
        if template not in compiled:
            compiled.clear()
            compiled[template] = env.from_string(template)
        return compiled[template].render(**variables), None
    except RecursionError:
        return None, "RecursionError"
    except Exception as e:  # whatever Python raises is an error for us
        return None, f"{type(e).__name__}: {e}"


class Renderer:
    """tests/oracle/jinja/render.c as a process."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        encoding="utf-8", bufsize=1)

    def render(self, template, variables):
        request = {"template": template, "variables": variables, "now": NOW}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the renderer died on {request!r}")
        reply = json.loads(line)
        return (reply["text"], None) if reply["ok"] else (None, reply["error"])

    def close(self):
        self.process.stdin.close()
        if self.process.wait() != 0:
            raise SystemExit("the renderer failed at its end (memory not given back?)")
