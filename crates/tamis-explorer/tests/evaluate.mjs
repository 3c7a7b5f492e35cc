// Answers of the WebAssembly module: reads calls as JSON, one array
// [function, ...arguments] each, and prints the answers in the same order.
import { readFileSync } from "node:fs";

const module = readFileSync(new URL("../explorer.wasm", import.meta.url));
const { instance } = await WebAssembly.instantiate(module, {});
const { memory, output } = instance.exports;
const answers = JSON.parse(readFileSync(0, "utf8")).map(([name, ...values]) => {
  const length = instance.exports[name](...values);
  const bytes = new Uint8Array(memory.buffer, output(), length);
  return JSON.parse(new TextDecoder().decode(bytes));
});
process.stdout.write(JSON.stringify(answers));
