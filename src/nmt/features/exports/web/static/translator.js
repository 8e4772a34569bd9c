// Translate text sentence by sentence: what the page asks, with the answers that nmt's server gives.

import { beamSearch } from "./beam.js";
import { matchWords, tokenScores, wordAttention, wordProbabilities } from "./details.js";
import { MAX_PIECES, nextWords } from "./next-words.js";
import { END, Tokenizer } from "./tokenizer.js";
import { Splitter } from "./splitting.js";

/**
 * @typedef {object} Facts what the export says of the model
 * @property {string} name
 * @property {[string, string]} languages
 * @property {{beam: number, alpha: number, extra_length: number}} search
 * @property {{source: number, target: number}} max_tokens end marks included
 * @property {import("./model.js").CacheShape} cache
 * @property {ConstructorParameters<typeof Splitter>[0]} splitting
 */

const ALTERNATIVES = 3;
const WORD = /^[\p{L}\p{M}\p{N}]/u;

export class Translator {
  /**
   * @param {import("./model.js").Model} model
   * @param {object} tokenizer the content of tokenizer.json
   * @param {Facts} facts
   */
  constructor(model, tokenizer, facts) {
    this.model = model;
    this.tokenizer = new Tokenizer(tokenizer);
    this.splitter = new Splitter(facts.splitting);
    this.facts = facts;
    this.pieces = this.tokenizer.pieces;
  }

  /**
   * Return the sentences of a text.
   * @param {string} text
   */
  split(text) {
    return this.splitter.split(text).map(({ start, end }) => ({ start, end, source: text.slice(start, end) }));
  }

  /** Return the translations of a sentence with their words and what these attend to, best first. */
  async candidates(source, { beginning = "" } = {}) {
    const ids = this.#sourceIds(source);
    const sourceWords = matchWords(this.#spelled(ids.slice(0, -1)), source);
    const named = { source_words: sourceWords.map(({ text }) => text) };
    if (ids.length < 2) return [{ text: "", ...named, words: [] }];
    const encoded = await this.model.encode(ids);
    const found = await this.#search(encoded, ids.length, this.#beginningIds(beginning));
    const candidates = [];
    for (const { tokens } of found) {
      candidates.push({ ...named, ...(await this.#described(encoded, sourceWords, tokens)) });
    }
    return candidates;
  }

  /**
   * Return the best hypotheses of a sentence.
   * @param {string} source
   * @param {number} nbest
   * @returns {Promise<import("./beam.js").Hypothesis[]>}
   */
  async search(source, nbest = 1) {
    const ids = this.#sourceIds(source);
    if (ids.length < 2) return [{ tokens: [], score: 0, logProbability: 0 }];
    return this.#search(await this.model.encode(ids), ids.length, [], nbest);
  }

  /** Return the words that are most likely to follow the beginning of a sentence's translation. */
  async choices({ text, beginning }, count = 8) {
    const ids = this.#sourceIds(text);
    const limit = this.facts.max_tokens.target;
    const begun = this.tokenizer.encode(beginning.trimEnd()).slice(0, Math.max(0, limit - MAX_PIECES));
    const scorer = this.model.scorer(await this.model.encode(ids));
    const words = await nextWords(scorer, begun, this.pieces, count, limit - begun.length);
    const probabilities = new Map(); // several sequences of pieces may spell the same word
    for (const { tokens, total } of words) {
      const word = this.tokenizer.decode(tokens);
      probabilities.set(word, (probabilities.get(word) ?? 0) + Math.exp(total));
    }
    const named = [...probabilities].map(([word, probability]) => ({ text: word, probability }));
    return named.sort((a, b) => b.probability - a.probability);
  }

  #search(encoded, length, begun, most = ALTERNATIVES) {
    const { beam, alpha, extra_length: extra } = this.facts.search;
    const nbest = Math.min(most, beam);
    const limit = Math.min(length + extra + begun.length, this.facts.max_tokens.target);
    const restriction = begun.length ? this.#continues(begun) : undefined;
    return beamSearch(this.model.scorer(encoded), { limit, beam, alpha, nbest, restriction });
  }

  /** Return a restriction to translations that begin with whole words. */
  #continues(begun) {
    return (place) => {
      if (place <= begun.length) return { allows: (token) => token === begun[place - 1], certain: true };
      return place === begun.length + 1 ? { allows: (token) => !this.#goesOn(token), certain: false } : null;
    };
  }

  #goesOn(token) {
    return token > END && WORD.test(this.pieces[token]);
  }

  #beginningIds(beginning) {
    return this.tokenizer.encode(beginning.trimEnd()).slice(0, this.facts.max_tokens.target - 1);
  }

  #sourceIds(source) {
    return [...this.tokenizer.encodeInput(source).slice(0, this.facts.max_tokens.source - 1), END];
  }

  #spelled(ids) {
    return ids.map((id) => this.pieces[id]);
  }

  async #described(encoded, source, tokens) {
    const { logits, attention } = await this.model.read(encoded, tokens);
    const text = this.tokenizer.decode(tokens);
    const target = matchWords(this.#spelled(tokens), text);
    const words = wordProbabilities(target, tokenScores(logits, tokens));
    return text.trim() ? { text, words, attention: wordAttention(attention, source, target) } : { text, words };
  }
}
