// Translate lines with bergamot: `node bergamot_client.mjs PACKAGE WORKSPACE`, with a question as JSON on standard input.
//
// The worker of the package is a script for browsers and CommonJS, but its folder declares modules, as which Node cannot
// run it. So it runs from a copy in a workspace that declares scripts.

import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";

const [bergamot, workspace] = process.argv.slice(2);
const scripts = ["translator-worker.js", "bergamot-translator-worker.js", "bergamot-translator-worker.wasm"];
for (const name of scripts) copyFileSync(join(bergamot, "worker", name), join(workspace, name));
writeFileSync(join(workspace, "package.json"), JSON.stringify({ type: "commonjs" }));

const worker = new Worker(join(workspace, scripts[0]));
const call = (name, ...args) => new Promise((accept, reject) => {
  worker.once("error", reject);
  worker.once("message", ({ error, result }) => (error ? reject(new Error(error.message)) : accept(result)));
  worker.postMessage({ id: 1, name, args });
});
const bytes = (file) => Uint8Array.from(readFileSync(file)).buffer;

const { model, vocabularies, precision, lines } = JSON.parse(readFileSync(0, "utf8"));
const pair = { from: "a", to: "b" };
await call("initialize", { cacheSize: 0 });
await call("loadTranslationModel", pair, {
  model: bytes(model), shortlist: new ArrayBuffer(0), vocabs: vocabularies.map(bytes), qualityModel: null,
  config: { "gemm-precision": precision },
});
const began = performance.now();
const found = [];
for (const text of lines) {
  const [translated] = await call("translate", { models: [pair], texts: [{ text, html: false, qualityScores: false }] });
  found.push(translated.target.text);
}
console.log(JSON.stringify({ found, seconds: (performance.now() - began) / 1000 }));
await worker.terminate();
