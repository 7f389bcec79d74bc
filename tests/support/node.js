'use strict';
// The page's scripts that need no page, in Node. Each line that is read is what Python's `Node.ask` was given: the body of
// a function, and its arguments. Each line that is written is what it returns, or the message of its error.
const { readFileSync } = require('fs');
const { createInterface } = require('readline');

const [core, ...scripts] = process.argv.slice(2).map((path) => readFileSync(path));
const cpbpe = new Function(`${scripts.join('\n')}\nreturn cpbpe;`)();
const models = {}; // what the tests have loaded
const file = (base64) => Uint8Array.from(Buffer.from(base64, 'base64'));
const hex = (bytes) => Buffer.from(bytes).toString('hex');
const helpers = { cpbpe, models, file, hex };

// Values that JSON does not have: bytes, which become bytes in Python, too, and numbers such as infinity, which become texts.
const written = (key, value) => {
  if (value instanceof Uint8Array) return { bytes: hex(value) };
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;
};

const answer = (line) => {
  const { body, given } = JSON.parse(line);
  const known = { ...helpers, ...given };
  return new Function(...Object.keys(known), `'use strict'; ${body}`)(...Object.values(known));
};

cpbpe.start(core).then(async () => {
  for await (const line of createInterface({ input: process.stdin })) {
    let made;
    try {
      made = { result: answer(line) ?? null };
    } catch (error) {
      made = { error: error.message };
    }
    process.stdout.write(`${JSON.stringify(made, written)}\n`);
  }
});
