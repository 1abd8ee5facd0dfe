// SPDX-License-Identifier: Apache-2.0
// Compares our encoder with @huggingface/tokenizers on random strings.
//
//   node compare.mjs TOKENIZE_LINES MODEL_FOLDER [COUNT [SEED]]
//   node compare.mjs --ids MODEL_FOLDER TEXT_FILE OUT N     the oracle's first N ids of a text, u32 little-endian
//   node compare.mjs --patterns TOKENIZE_LINES MODEL_FOLDER OUT COUNT SEED   the same vocabulary with each of the patterns that GGUF
//                                                           files name; folders of them are made under OUT
//
// The packages are looked for in $AEGIS_ORACLE_MODULES (a folder made with `npm ci` from this one's lock file) or,
// without it, beside this script. Exit 0 equal, 1 different, 77 packages not installed.
//
// Left out of the strings: what is newer than Unicode 14, the version of our pattern library.
import { execFileSync, spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = process.env.AEGIS_ORACLE_MODULES ?? path.dirname(fileURLToPath(import.meta.url));
let Tokenizer;
try {
  ({ Tokenizer } = createRequire(path.join(here, 'x.js'))('@huggingface/tokenizers'));
} catch (error) {
  console.log(`skipped: @huggingface/tokenizers is not installed under ${here} (${error.code})`);
  process.exit(77);
}

const read = (folder, name) => JSON.parse(readFileSync(path.join(folder, name), 'utf8'));
const open = (folder) => new Tokenizer(read(folder, 'tokenizer.json'), read(folder, 'tokenizer_config.json'));

// Code points assigned after Unicode 14, as far as engines of today know them.
const newer = [[0x88f, 0x88f], [0x897, 0x897], [0xc5c, 0xc5c], [0xcdc, 0xcdc], [0xcf3, 0xcf3], [0xece, 0xece],
  [0x1acf, 0x1add], [0x1ae0, 0x1aeb], [0x1b4e, 0x1b4f], [0x1b7f, 0x1b7f], [0x1c89, 0x1c8a], [0x20c1, 0x20c1],
  [0x2427, 0x2429], [0x2b96, 0x2b96], [0x2ffc, 0x2fff], [0x31e4, 0x31e5], [0x31ef, 0x31ef], [0xa7cb, 0xa7cf],
  [0xa7d2, 0xa7d4], [0xa7da, 0xa7dc], [0xa7f1, 0xa7f1], [0xfbc3, 0xfbd2], [0xfd90, 0xfd91], [0xfdc8, 0xfdce],
  [0x105c0, 0x105ff], [0x10940, 0x1095f], [0x10d40, 0x10d8f], [0x10ec2, 0x10eff], [0x1123f, 0x11241], [0x11380, 0x113ff],
  [0x116d0, 0x116ff], [0x11b00, 0x11b09], [0x11b60, 0x11b7f], [0x11bc0, 0x11bff], [0x11db0, 0x11def], [0x11f00, 0x11f5f],
  [0x1342f, 0x1342f], [0x13439, 0x143ff], [0x16100, 0x1613f], [0x16d40, 0x16d7f], [0x16ea0, 0x16edf], [0x16ff2, 0x16fff],
  [0x187f8, 0x187ff], [0x18cd6, 0x18cff], [0x18d09, 0x18dff], [0x1b132, 0x1b132], [0x1b155, 0x1b155], [0x1cc00, 0x1ccfc],
  [0x1cd00, 0x1ceb3], [0x1ceba, 0x1ced0], [0x1cee0, 0x1cef0], [0x1d2c0, 0x1d2d3], [0x1df25, 0x1df2a], [0x1e030, 0x1e08f],
  [0x1e4d0, 0x1e4f9], [0x1e5d0, 0x1e5ff], [0x1e6c0, 0x1e6ff], [0x1f6d8, 0x1f6d8], [0x1f6dc, 0x1f6dc], [0x1f774, 0x1f77f],
  [0x1f7d9, 0x1f7d9], [0x1f8b2, 0x1f8bb], [0x1f8c0, 0x1f8c1], [0x1f8d0, 0x1f8d8], [0x1fa54, 0x1fa57], [0x1fa75, 0x1fa77],
  [0x1fa87, 0x1fa8a], [0x1fa8e, 0x1fa8f], [0x1faad, 0x1faaf], [0x1fabb, 0x1fabf], [0x1fac6, 0x1fac6], [0x1fac8, 0x1fac8],
  [0x1facd, 0x1facf], [0x1fada, 0x1fadc], [0x1fadf, 0x1fadf], [0x1fae8, 0x1faea], [0x1faef, 0x1faef], [0x1faf7, 0x1faf8],
  [0x1fbcb, 0x1fbef], [0x1fbfa, 0x1fbfa], [0x2b739, 0x2b73f], [0x2cea2, 0x2cead], [0x2ebf0, 0x2ee5d], [0x31350, 0x33479]];

function random(seed) { // mulberry32
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function makeStrings(model, count, seed) {
  const next = random(seed);
  const below = (n) => Math.floor(next() * n);
  const pick = (list) => list[below(list.length)];
  const added = read(model, 'tokenizer.json').added_tokens.map((t) => t.content);
  const from = (a, b) => String.fromCodePoint(a + below(b - a + 1));
  const any = (a, b) => {
    for (;;) {
      const c = a + below(b - a + 1);
      if ((c >= 0xd800 && c <= 0xdfff) || newer.some(([x, y]) => c >= x && c <= y)) continue;
      return String.fromCodePoint(c);
    }
  };
  const run = (f, n) => Array.from({ length: 1 + below(n) }, f).join('');
  const prose = readFileSync(path.join(model, 'chat_template.jinja'), 'utf8');
  const makers = [
    () => run(() => from(0x61, 0x7a), 12),
    () => run(() => from(0x20, 0x7e), 20),
    () => { const at = below(prose.length); return prose.slice(at, at + below(60)); },
    () => run(() => pick([' ', ' ', ' ', '\t', '\n', '\r', '\r\n', '\u00a0', '\u3000', '\u2003', '\u2028', '\u180e', '\u200b', '\v', '\f', '\u0085', '\ufeff']), 8),
    () => ' '.repeat(below(70)),
    () => run(() => from(0x30, 0x39), 12),
    () => pick(['\'', '\u2019', '']) + pick(['s', 't', 're', 've', 'm', 'll', 'd', 'S', 'T', 'RE', 'Ve', 'M', 'LL', 'D', 'x']),
    () => run(() => any(0xa0, 0x24f), 8),
    () => run(() => pick([from(0x61, 0x7a), from(0x300, 0x36f), from(0x1dc0, 0x1dff), from(0x591, 0x5bd)]), 10),
    () => run(() => any(0x1e00, 0x1fff), 6),
    () => run(() => any(0x370, 0x6ff), 8),
    () => run(() => any(0x900, 0x0fff), 8),
    () => run(() => any(0x1100, 0x11ff), 4) + run(() => any(0xac00, 0xd7a3), 4) + run(() => any(0x1160, 0x11ff), 3),
    () => run(() => any(0x3040, 0x30ff), 8),
    () => run(() => any(0x4e00, 0x9fff), 8),
    () => run(() => any(0xf900, 0xfaff), 4),
    () => run(() => any(0x1f300, 0x1faff), 4),
    () => '\u{1f468}\u200d\u{1f469}\u200d\u{1f467}\ufe0f',
    () => run(() => any(0x10000, 0x1ffff), 5),
    () => run(() => any(0x20000, 0x323af), 4),
    () => run(() => any(0, 0xffff), 5),
    () => run(() => any(0x2000, 0x2bff), 5),
    () => pick(added),
    () => { const t = pick(added); return t.slice(0, below(t.length)) + pick(added).slice(below(3)); },
    () => 'a'.repeat(below(200)),
  ];
  const strings = [];
  for (let i = 0; i < count; i++) strings.push(run(() => pick(makers)(), 8));
  return strings;
}

function encodeOurs(program, model, strings) {
  const child = spawn(program, [path.join(model, 'tokenizer.json'), path.join(model, 'tokenizer_config.json')],
    { stdio: ['pipe', 'pipe', 'inherit'] });
  const records = strings.map((s) => {
    const text = Buffer.from(s, 'utf8');
    const head = Buffer.alloc(4);
    head.writeUInt32LE(text.length);
    return Buffer.concat([head, text]);
  });
  const out = [];
  child.stdout.on('data', (d) => out.push(d));
  child.stdin.on('error', () => {});
  child.stdin.end(Buffer.concat(records));
  return new Promise((done, fail) => {
    child.on('error', fail);
    child.on('close', (code) => (code === 0 ? done(Buffer.concat(out).toString().split('\n').slice(0, -1))
      : fail(new Error(`${program} ended with ${code}`))));
  });
}

if (process.argv[2] === '--ids') {
  const [model, file, out, n] = process.argv.slice(3);
  const { ids } = open(model).encode(readFileSync(file, 'utf8'));
  const bytes = Buffer.alloc(4 * Number(n));
  for (let i = 0; i < Number(n); i++) bytes.writeUInt32LE(Number(ids[i]), 4 * i);
  writeFileSync(out, bytes);
  process.exit(0);
}

async function compare(program, model, folders, count, seed) {
  const strings = makeStrings(model, Number(count), Number(seed));
  const oracle = open(folders.oracle);
  const ours = await encodeOurs(program, folders.ours, strings);
  let different = ours.length === strings.length ? 0 : 1;
  let tokens = 0;
  strings.forEach((s, i) => {
    const { ids } = oracle.encode(s);
    tokens += ids.length;
    const want = ids.map(Number).join(' ');
    if (want === ours[i]) return;
    if (++different > 10) return;
    console.log(`string ${i} of seed ${seed}: ${JSON.stringify(s)}\n  oracle ${want}\n  ours   ${ours[i]}`);
  });
  console.log(`${folders.name}${strings.length} strings, ${tokens} tokens: ${different === 0 ? 'all equal' : `${different} different`}`);
  return different === 0;
}

// A folder with the vocabulary of `model` that cuts text by `patterns`.
function withPatterns(model, folder, patterns) {
  const json = read(model, 'tokenizer.json');
  const split = (Regex) => ({ type: 'Split', pattern: { Regex }, behavior: 'Isolated', invert: false });
  const bytes = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false };
  json.pre_tokenizer = { type: 'Sequence', pretokenizers: [...patterns.map(split), bytes] };
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, 'tokenizer.json'), JSON.stringify(json));
  copyFileSync(path.join(model, 'tokenizer_config.json'), path.join(folder, 'tokenizer_config.json'));
  return folder;
}

if (process.argv[2] === '--patterns') {
  const [program, model, out, count, seed] = process.argv.slice(3);
  const named = JSON.parse(execFileSync(program, ['--patterns'], { encoding: 'utf8' }));
  let equal = true;
  for (const [name, patterns] of Object.entries(named)) {
    const folders = { name: `${name}: `, ours: withPatterns(model, path.join(out, name, 'ours'), patterns),
      // JavaScript's name of a script.
      oracle: withPatterns(model, path.join(out, name, 'oracle'), patterns.map((p) => p.replaceAll('\\p{Han}', '\\p{Script=Han}'))) };
    equal = await compare(program, model, folders, count, seed) && equal;
  }
  process.exit(equal ? 0 : 1);
}

const [program, model, count = '4000', seed = '1'] = process.argv.slice(2);
process.exit(await compare(program, model, { name: '', ours: model, oracle: model }, count, seed) ? 0 : 1);
