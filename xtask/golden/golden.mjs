// Opens every golden file in WebAssembly and compares its encoding:
// node golden.mjs MODULE.wasm DIRECTORY
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

// Filters of every kind, filled and queried; `cargo test -p tamis-golden`
// compares it with that of a processor.
const DIGEST = 478331029677499437n;

const [module, directory] = process.argv.slice(2);
const { instance } = await WebAssembly.instantiate(readFileSync(module), {});
const { memory, room, encode_again, len, start, digest } = instance.exports;
const files = readdirSync(directory).filter(name => name.endsWith(".tamis"));
assert.ok(files.length > 20, `${files.length} files`);

// Keys of a file, or -1; its encoding replaces it in the module.
function open(bytes) {
  const at = room(bytes.length);
  new Uint8Array(memory.buffer).set(bytes, at);
  return encode_again();
}

let keys = 0;
for (const name of files) {
  const bytes = readFileSync(join(directory, name));
  const found = open(bytes);
  assert.ok(found >= 0, `${name} is refused`);
  keys += found;
  const again = new Uint8Array(memory.buffer, start(), len());
  assert.ok(bytes.equals(again), `${name} is encoded differently`);
  // A changed byte is found.
  bytes[bytes.length >> 1] ^= 1;
  assert.equal(open(bytes), -1, `${name} with a changed byte is opened`);
}
console.log(`${files.length} golden files with ${keys} keys are encoded again byte for byte`);
assert.equal(BigInt.asUintN(64, digest()), DIGEST, "filters that are filled");
console.log("filters of every kind are filled and queried as elsewhere");
