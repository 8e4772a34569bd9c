// The words that are likely to come next in a translation.

import { logSoftmax, placesOfHighest } from "./beam.js";
import { BEGIN, END, PAD, SPACE, UNKNOWN } from "./tokenizer.js";

export const MAX_PIECES = 16; // a word has fewer
const ROWS_PER_WORD = 4; // unfinished words that are kept open for each word that is wanted
const SPECIAL = [UNKNOWN, PAD, BEGIN, END];

/** @typedef {{tokens: number[], total: number}} Word */

const sumOfWordEnds = (logProbabilities, pieces) => {
  let sum = 0;
  logProbabilities.forEach((each, token) => {
    if (pieces[token].startsWith(SPACE) || token === END) sum += Math.exp(each);
  });
  return Math.log(sum);
};

/** Return the most probable words with one more piece. */
const extended = (open, rows, pieces, count) => {
  const begins = open[0].tokens.length === 0;
  const found = rows.flatMap((logProbabilities, row) => {
    const allowed = logProbabilities.map((each, token) =>
      !SPECIAL.includes(token) && pieces[token].startsWith(SPACE) === begins ? each : -Infinity);
    return placesOfHighest(allowed, count).map((token) => ({
      row, tokens: [...open[row].tokens, token], total: open[row].total + allowed[token],
    }));
  });
  return found.filter(({ total }) => total > -Infinity).sort((a, b) => b.total - a.total).slice(0, count);
};

const best = (words, count) => [...words].sort((a, b) => b.total - a.total).slice(0, count);

/**
 * Return the most probable words after a beginning, most probable first. A word ends where the next token begins another
 * word or ends the sentence, so its probability includes that of ending there.
 * @param {import("./beam.js").Scorer} scorer
 * @param {number[]} beginning
 * @param {string[]} pieces
 * @param {number} count
 * @param {number} room the number of tokens that the scorer can read from the beginning's last one on
 * @returns {Promise<Word[]>}
 */
export const nextWords = async (scorer, beginning, pieces, count, room = MAX_PIECES) => {
  const before = [BEGIN, ...beginning];
  let tokens = [before.pop()];
  let parents = [0];
  for (const token of before) await scorer([token], parents);
  let finished = [];
  let open = [{ tokens: [], total: 0 }];
  for (let length = 0; length < Math.min(MAX_PIECES, room); length += 1) {
    const scores = (await scorer(tokens, parents)).map(logSoftmax);
    if (length) {
      const ended = open.map(({ tokens, total }, row) => ({ tokens, total: total + sumOfWordEnds(scores[row], pieces) }));
      finished = best([...finished, ...ended], count);
    }
    // a longer word is never more probable than its beginning
    const least = finished.length === count ? finished[count - 1].total : -Infinity;
    open = extended(open, scores, pieces, ROWS_PER_WORD * count).filter(({ total }) => total > least);
    if (!open.length) break;
    tokens = open.map((word) => word.tokens.at(-1));
    parents = open.map(({ row }) => row);
  }
  return finished;
};
