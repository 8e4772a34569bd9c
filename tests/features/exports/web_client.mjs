// Run the scripts of the page under Node: `node web_client.mjs FOLDER`, with questions as JSON on standard input.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

globalThis.fetch = () => { throw new Error("the test is offline"); };
const folder = process.argv[2];
const script = (name) => import(pathToFileURL(join(folder, name)));
const bytes = (name) => readFileSync(join(folder, name));
const json = (name) => JSON.parse(bytes(name));
const plain = (value) => JSON.parse(JSON.stringify(value));

const openModel = async (facts) => {
  const [runtime, { Model }] = await Promise.all([script("runtime/onnxruntime.js"), script("model.js")]);
  runtime.env.wasm.wasmBinary = bytes("runtime/onnxruntime.wasm");
  runtime.env.wasm.numThreads = 1;
  const shared = "word_vectors.bin";
  const externalData = existsSync(join(folder, "model", shared)) ? [{ path: shared, data: bytes(`model/${shared}`) }] : [];
  const open = (name) => runtime.InferenceSession.create(bytes(`model/${name}.onnx`), { externalData });
  return new Model(runtime, { encoder: await open("encoder_model"), decoder: await open("decoder_model_merged") }, facts.cache);
};

const openTranslator = async () => {
  const { Translator } = await script("translator.js");
  const facts = json("model/model.json");
  return new Translator(await openModel(facts), json("model/tokenizer.json"), facts);
};

/** Score the next token by the last one alone, as a table says. */
const tableScorer = (table) => async (tokens) => tokens.map((token) => Float32Array.from(table[token]));

const answers = {
  tokens: async ({ lines, ids }) => {
    const { Tokenizer } = await script("tokenizer.js");
    const tokenizer = new Tokenizer(json("model/tokenizer.json"));
    const inputs = lines.map((line) => tokenizer.encodeInput(line));
    return { ids: lines.map((line) => tokenizer.encode(line)), inputs, texts: ids.map((each) => tokenizer.decode(each)) };
  },
  split: async ({ texts }) => {
    const { Splitter } = await script("splitting.js");
    const splitter = new Splitter(json("model/model.json").splitting);
    return texts.map((text) => splitter.split(text).map(({ start, end }) => text.slice(start, end)));
  },
  beam: async ({ table, settings, begun }) => {
    const { beamSearch } = await script("beam.js");
    const restriction = (place) => (place <= begun.length ? { allows: (token) => token === begun[place - 1], certain: true } : null);
    return beamSearch(tableScorer(table), { ...settings, restriction });
  },
  next: async ({ table, beginning, pieces, count, room }) => {
    const { nextWords } = await script("next-words.js");
    return nextWords(tableScorer(table), beginning, pieces, count, room);
  },
  words: async ({ pieces, text }) => {
    const { matchWords } = await script("details.js");
    return matchWords(pieces, text);
  },
  translate: async ({ lines }) => {
    const translator = await openTranslator();
    const found = [];
    const began = performance.now();
    for (const line of lines) {
      const [best] = await translator.search(line);
      found.push({ text: translator.tokenizer.decode(best.tokens), score: best.score });
    }
    return { found, seconds: (performance.now() - began) / 1000 };
  },
  candidates: async ({ lines, beginning }) => {
    const translator = await openTranslator();
    const found = [];
    for (const line of lines) found.push(await translator.candidates(line, { beginning }));
    return found;
  },
  choices: async ({ text, beginning, count }) => (await openTranslator()).choices({ text, beginning }, count),
};

const { kind, ...question } = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(plain(await answers[kind](question))));
