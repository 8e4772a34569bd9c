// Translate in the background, one request after the other, so that the page stays quick.

import { listing, load } from "./files.js";
import { Model } from "./model.js";
import * as runtime from "./runtime/onnxruntime.js";
import { Translator } from "./translator.js";

const DESCRIPTIONS = ["model/model.json", "model/tokenizer.json"];
const GRAPHS = ["model/encoder_model.onnx", "model/decoder_model_merged.onnx"];
const RUNTIME = "runtime/onnxruntime.wasm";
const SHARED = "model/word_vectors.bin"; // what both graphs read, if the embeddings are tied
const MOST_REMEMBERED = 500; // sentences, so that typing translates only what is new
const remembered = new Map();
const cancelled = new Set();
let translator = null;
let queue = Promise.resolve();

const loadAll = async () => {
  const list = await listing();
  const files = [...DESCRIPTIONS, ...GRAPHS, RUNTIME, SHARED].filter((name) => name in list.files);
  const bytes = files.reduce((sum, name) => sum + list.files[name].bytes, 0);
  let received = 0;
  const onReceived = (count) => {
    received += count;
    self.postMessage({ progress: { received, bytes } });
  };
  const contents = await Promise.all(files.map((name) => load(name, list, onReceived)));
  const [facts, tokenizer] = contents.slice(0, DESCRIPTIONS.length).map((content) => JSON.parse(new TextDecoder().decode(content)));
  const [encoder, decoder, wasm, shared] = contents.slice(DESCRIPTIONS.length);
  runtime.env.wasm.wasmBinary = wasm.buffer;
  runtime.env.wasm.numThreads = 1;
  const externalData = shared ? [{ path: SHARED.split("/").at(-1), data: shared }] : [];
  const open = (graph) => runtime.InferenceSession.create(graph, { externalData });
  const graphs = { encoder: await open(encoder), decoder: await open(decoder) };
  translator = new Translator(new Model(runtime, graphs, facts.cache), tokenizer, facts);
  return { name: facts.name, languages: facts.languages };
};

/** Let the messages in that have arrived meanwhile. */
const pause = () => new Promise((resolve) => { setTimeout(resolve); });

const translate = async ({ text, beginning }, id) => {
  const sentences = [];
  for (const span of translator.split(text)) {
    await pause();
    if (cancelled.has(id)) break;
    sentences.push({ ...span, candidates: await candidates(span.source, beginning ?? "") });
  }
  return { sentences };
};

const candidates = async (source, beginning) => {
  const key = `${beginning}\n${source}`;
  if (!remembered.has(key)) {
    if (remembered.size >= MOST_REMEMBERED) remembered.clear();
    remembered.set(key, await translator.candidates(source, { beginning }));
  }
  return remembered.get(key);
};

const KINDS = { load: loadAll, translate, choices: (request) => translator.choices(request) };

const answer = async ({ id, kind, request }) => {
  if (cancelled.delete(id)) return;
  try {
    self.postMessage({ id, result: await KINDS[kind](request, id) });
  } catch (error) {
    self.postMessage({ id, error: `The translator failed: ${error.message ?? error}.` });
  }
  cancelled.delete(id);
};

self.addEventListener("message", ({ data }) => {
  if (data.kind === "cancel") cancelled.add(data.id);
  else queue = queue.then(() => answer(data));
});
