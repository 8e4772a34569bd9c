// Translate lines with transformers.js: `node transformers_js_client.mjs MODELS`, with a question as JSON on standard input.
// It runs from a folder with the package; MODELS has the folder `own`.

import { readFileSync } from "node:fs";
import { AutoModelForSeq2SeqLM, AutoTokenizer, env } from "@huggingface/transformers";

globalThis.fetch = () => { throw new Error("this program is offline"); };
env.allowRemoteModels = false;
env.localModelPath = process.argv[2];
const { dtype, extra_length, lines } = JSON.parse(readFileSync(0, "utf8"));
const tokenizer = await AutoTokenizer.from_pretrained("own");
const model = await AutoModelForSeq2SeqLM.from_pretrained("own", { dtype, session_options: { intraOpNumThreads: 1 } });
const found = [];
const began = performance.now();
for (const line of lines) {
  const input = tokenizer(line);
  const [tokens] = await model.generate({ ...input, max_length: input.input_ids.dims[1] + extra_length + 1 });
  found.push({
    source: Array.from(input.input_ids.data, Number), target: Array.from(tokens.data, Number),
    text: tokenizer.decode(tokens, { skip_special_tokens: true }),
  });
}
console.log(`answer: ${JSON.stringify({ found, seconds: (performance.now() - began) / 1000 })}`);
