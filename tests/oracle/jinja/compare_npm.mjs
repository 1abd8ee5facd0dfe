// SPDX-License-Identifier: Apache-2.0
// The requests that compare_templates.py --dump wrote, rendered by @huggingface/jinja: where it renders
// at all, its text must be ours. It knows less of Jinja2 than we do; what it refuses is counted, and the
// conversations it is known to render differently are listed below with the reason.
//
//     AEGIS_ORACLE_MODULES=folder-with-node_modules node compare_npm.mjs DUMP
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { basename } from "node:path";
import { createRequire } from "node:module";

// The package lies under the build tree, see `run`.
const require = createRequire((process.env.AEGIS_ORACLE_MODULES ?? ".") + "/");
const { Template } = require("@huggingface/jinja");

// It brings raise_exception and strftime_now with it; let the second see the time of the dump.
const now = 1700000000000;
const RealDate = Date;
globalThis.Date = class extends RealDate {
  constructor(...args) {
    super(...(args.length ? args : [now]));
  }
};

// Conversations in which the two are known to differ.
const expected = {
  "call": "numbers are JavaScript's: 1.0 is 1, 1e-07 is 1e-7",
  "float content": "numbers are JavaScript's: 1.0 is 1, 1e-07 is 1e-7",
  "image in system": "a printed object is JSON there, Python's repr in Jinja2 and here",
  "tool result as object": "a printed object is JSON there, Python's repr in Jinja2 and here",
};
const counts = new Map();
const compiled = new Map();
let equal = 0, refused = 0, different = 0, shown = 0;

function note(why) {
  counts.set(why, (counts.get(why) ?? 0) + 1);
}

for await (const line of createInterface({ input: createReadStream(process.argv[2]) })) {
  const { path, name, template, variables, text } = JSON.parse(line);
  let theirs;
  try {
    if (!compiled.has(path)) compiled.set(path, new Template(template));
    theirs = compiled.get(path).render(variables);
  } catch (e) {
    refused += 1;
    if (text !== null) note(`${basename(path)}: it refuses: ${String(e.message).slice(0, 90)}`);
    continue;
  }
  if (theirs === text) {
    equal += 1;
    continue;
  }
  const reason = text === null ? "it renders what Jinja2 refuses" : expected[name];
  if (reason !== undefined) {
    note(reason);
    continue;
  }
  different += 1;
  if (shown++ < 6)
    console.log(`--- ${basename(path)}: ${name}\nnpm  ${JSON.stringify(theirs)}\nours ${JSON.stringify(text)}`);
}
for (const [why, n] of counts) console.log(`${n}  ${why}`);
console.log(`${equal} equal, ${refused} refused, ${different} differ`);
process.exit(different === 0 && equal >= 3000 ? 0 : 1);
