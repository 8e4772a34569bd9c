// The model: two graphs, the encoder and the decoder with its cache, run by onnxruntime.

import { BEGIN } from "./tokenizer.js";

/** @typedef {{states: Tensor, mask: Tensor}} Encoded what the decoder reads of a source sentence */
/** @typedef {{layers: number, heads: number, key_width: number, value_width: number}} CacheShape */
/** @typedef {{type: string, data: ArrayLike<any>, dims: readonly number[]}} Tensor */

const KINDS = ["key", "value"];

/** Return rows of a tensor, each as often and in the order in which it is asked for. */
const takeRows = (runtime, { type, data, dims }, rows) => {
  const size = data.length / dims[0];
  const taken = new data.constructor(size * rows.length);
  rows.forEach((row, place) => taken.set(data.subarray(row * size, (row + 1) * size), place * size));
  return new runtime.Tensor(type, taken, [rows.length, ...dims.slice(1)]);
};

const rowsOf = ({ data, dims }) => {
  const width = dims.at(-1);
  return Array.from({ length: data.length / width }, (_, row) => data.subarray(row * width, (row + 1) * width));
};

export class Model {
  /**
   * @param {any} runtime onnxruntime
   * @param {{encoder: any, decoder: any}} graphs its sessions
   * @param {CacheShape} shape
   */
  constructor(runtime, { encoder, decoder }, shape) {
    this.runtime = runtime;
    this.encoder = encoder;
    this.decoder = decoder;
    this.shape = shape;
    const layers = Array.from({ length: shape.layers }, (_, layer) => layer);
    const namesOf = (side) => layers.flatMap((layer) => KINDS.map((kind) => `${layer}.${side}.${kind}`));
    this.names = { decoder: namesOf("decoder"), encoder: namesOf("encoder") };
  }

  /**
   * Encode a source sentence.
   * @param {number[]} ids with the end mark
   * @returns {Promise<Encoded>}
   */
  async encode(ids) {
    const mask = this.#integers(ids.map(() => 1), [1, ids.length]);
    const found = await this.encoder.run({ input_ids: this.#integers(ids, [1, ids.length]), attention_mask: mask });
    return { states: found.last_hidden_state, mask };
  }

  /**
   * Return a scorer of the next tokens of one sentence, which keeps the cache.
   * @param {Encoded} encoded
   * @returns {import("./beam.js").Scorer}
   */
  scorer(encoded) {
    let own = this.#emptyCache("decoder");
    let source = this.#emptyCache("encoder");
    let read = encoded;
    let begun = false;
    return async (tokens, parents) => {
      const names = begun ? this.names.decoder : [...this.names.decoder, ...this.names.encoder];
      const outputs = ["logits", ...names.map((name) => `present.${name}`)];
      const count = tokens.length;
      if (count !== read.mask.dims[0]) [read, source] = [read, source].map((each) => this.#repeated(each, count));
      const past = { ...this.#taken(own, parents), ...source };
      const found = await this.#decode(read, this.#integers(tokens, [count, 1]), past, begun, outputs);
      own = this.#cacheOf(found, this.names.decoder);
      if (!begun) source = this.#cacheOf(found, this.names.encoder);
      begun = true;
      return rowsOf(found.logits);
    };
  }

  /**
   * Return the logits and the attention to the source at each place of a translation, up to its end mark.
   * @param {Encoded} encoded
   * @param {number[]} ids
   * @returns {Promise<{logits: Float32Array[], attention: Float32Array[]}>}
   */
  async read(encoded, ids) {
    const tokens = this.#integers([BEGIN, ...ids], [1, ids.length + 1]);
    const past = { ...this.#emptyCache("decoder"), ...this.#emptyCache("encoder") };
    const { logits, attention } = await this.#decode(encoded, tokens, past, false, ["logits", "attention"]);
    return { logits: rowsOf(logits), attention: rowsOf(attention) };
  }

  #decode(encoded, tokens, past, cached, outputs) {
    const given = { encoder_hidden_states: encoded.states, encoder_attention_mask: encoded.mask, input_ids: tokens };
    return this.decoder.run({ ...given, use_cache_branch: new this.runtime.Tensor("bool", [cached], [1]), ...past }, outputs);
  }

  #integers(numbers, dims) {
    return new this.runtime.Tensor("int64", BigInt64Array.from(numbers, BigInt), dims);
  }

  #emptyCache(side) {
    const { heads, key_width: key, value_width: value } = this.shape;
    const empty = (width) => new this.runtime.Tensor("float32", new Float32Array(0), [1, heads, 0, width]);
    const emptyOf = (name) => empty(name.endsWith("key") ? key : value);
    return Object.fromEntries(this.names[side].map((name) => [`past_key_values.${name}`, emptyOf(name)]));
  }

  #cacheOf(found, names) {
    return Object.fromEntries(names.map((name) => [`past_key_values.${name}`, found[`present.${name}`]]));
  }

  #taken(tensors, rows) {
    return Object.fromEntries(Object.entries(tensors).map(([name, tensor]) => [name, takeRows(this.runtime, tensor, rows)]));
  }

  /** Return tensors whose rows are equal with another number of rows. */
  #repeated(tensors, count) {
    return this.#taken(tensors, new Array(count).fill(0));
  }
}
