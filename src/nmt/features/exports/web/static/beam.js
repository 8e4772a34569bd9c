// Beam search as nmt's own: the same candidates in the same order, in float32, with GNMT's length penalty.

import { BEGIN, END, PAD } from "./tokenizer.js";

/**
 * @callback Scorer scores the next token of each row. Row r extends row `parents[r]` of the previous call by `tokens[r]`.
 * @param {number[]} tokens
 * @param {number[]} parents
 * @returns {Promise<Float32Array[]>} logits of each row
 */
/** @typedef {{tokens: number[], score: number, logProbability: number}} Hypothesis */
/** @typedef {{token: number, total: number, row: number, before: Open | null}} Open a hypothesis as a linked list */
/**
 * @callback Restriction returns whether a token may stand at a place, from 1, with which probability: the model's own, or
 * 1; null allows all tokens.
 * @param {number} place
 * @returns {{allows: (token: number) => boolean, certain: boolean} | null}
 */

/**
 * Return the log-probabilities of the tokens.
 * @param {Float32Array} logits
 */
export const logSoftmax = (logits) => {
  let highest = -Infinity;
  for (const each of logits) if (each > highest) highest = each;
  let sum = 0;
  for (const each of logits) sum += Math.exp(each - highest);
  const shift = highest + Math.log(sum);
  return logits.map((each) => each - shift);
};

/**
 * Return the places of the highest numbers, highest first.
 * @param {Float32Array} numbers
 * @param {number} count
 */
export const placesOfHighest = (numbers, count) => {
  const places = [];
  for (let place = 0; place < numbers.length; place += 1) {
    if (places.length === count && !(numbers[place] > numbers[places[count - 1]])) continue;
    let at = Math.min(places.length, count - 1);
    while (at > 0 && numbers[places[at - 1]] < numbers[place]) {
      places[at] = places[at - 1];
      at -= 1;
    }
    places[at] = place;
  }
  return places;
};

const penaltyOf = (length, alpha) => Math.fround(((5 + length) / 6) ** alpha);

const restrict = (logProbabilities, restriction) => {
  logProbabilities[PAD] = -Infinity;
  logProbabilities[BEGIN] = -Infinity;
  if (!restriction) return;
  for (let token = 0; token < logProbabilities.length; token += 1) {
    if (!restriction.allows(token)) logProbabilities[token] = -Infinity;
    else if (restriction.certain) logProbabilities[token] = 0;
  }
};

/** Return the most probable continuations of the open hypotheses, as many as can matter. */
const continuations = (open, rows, beam, restriction) => {
  const found = rows.flatMap((logits, row) => {
    const logProbabilities = logSoftmax(logits);
    restrict(logProbabilities, restriction);
    return placesOfHighest(logProbabilities, beam + 1).map((token) => ({
      token, row, total: Math.fround(open[row].total + logProbabilities[token]), before: open[row],
    }));
  });
  return found.filter(({ total }) => total > -Infinity).sort((a, b) => b.total - a.total).slice(0, 2 * beam);
};

const tokensOf = (last) => {
  const tokens = [];
  for (let each = last; each.before; each = each.before) tokens.unshift(each.token);
  return tokens;
};

const ONLY_END = { allows: (token) => token === END, certain: false };

/**
 * Return the best translations of a sentence, best first.
 * @param {Scorer} scorer
 * @param {{limit: number, beam: number, alpha: number, nbest: number, restriction?: Restriction}} settings `limit` is the
 *   largest number of tokens, with the end mark
 * @returns {Promise<Hypothesis[]>}
 */
export const beamSearch = async (scorer, { limit, beam, alpha, nbest, restriction = () => null }) => {
  let open = [{ token: BEGIN, total: 0, row: 0, before: null }];
  let finished = [];
  let count = 0;
  for (let length = 1; length <= limit && open.length; length += 1) {
    const rows = await scorer(open.map(({ token }) => token), open.map(({ row }) => row));
    const found = continuations(open, rows, beam, length === limit ? ONLY_END : restriction(length));
    const ended = found.slice(0, beam).filter(({ token }) => token === END);
    count += ended.length;
    finished.push(...ended.map(({ total, before }) => ({
      tokens: tokensOf(before), score: Math.fround(total / penaltyOf(length, alpha)), logProbability: total,
    })));
    finished = finished.sort((a, b) => b.score - a.score).slice(0, nbest);
    open = found.filter(({ token }) => token !== END).slice(0, beam);
    const isBehind = (last) => open.length > 0 && finished.length === nbest && finished[nbest - 1].score >=
      Math.fround(open[0].total / penaltyOf(last, alpha));
    if ((count >= beam && isBehind(length)) || isBehind(limit)) break;
  }
  return finished;
};
