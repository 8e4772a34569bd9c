// What is known of the words of a translation: how probable they are, and what they attend to.

import { logSoftmax } from "./beam.js";
import { END, SPACE } from "./tokenizer.js";

/** @typedef {[number, number]} Range places from the first up to the second */

/**
 * Return the places of the pieces of each word: it begins with the mark of a space, and has some text.
 * @param {string[]} pieces
 * @returns {Range[]}
 */
export const groupPieces = (pieces) => {
  const starts = [0];
  let hasText = false;
  pieces.forEach((piece, place) => {
    if (piece.startsWith(SPACE) && hasText) {
      starts.push(place);
      hasText = false;
    }
    hasText ||= piece !== SPACE;
  });
  if (!hasText && starts.length > 1) starts.pop(); // a space at the end
  return starts.map((start, word) => [start, starts[word + 1] ?? pieces.length]).filter(([start, end]) => end > start);
};

/**
 * Return the words of a text that has these pieces: as the text spells them, if it has the same number.
 * @param {string[]} pieces
 * @param {string} text
 */
export const spell = (pieces, text) => {
  const spelled = groupPieces(pieces).map(([start, end]) => pieces.slice(start, end).join("").replaceAll(SPACE, ""));
  const words = text.trim() ? text.trim().split(/\s+/u) : [];
  return words.length === spelled.length ? words : spelled;
};

/**
 * Return how probable each token of a translation is, given the logits at each place.
 * @param {Float32Array[]} logits
 * @param {number[]} ids
 */
export const tokenScores = (logits, ids) => [...ids, END].map((id, place) => logSoftmax(logits[place])[id]);

/**
 * Return the words with their probabilities: the products of those of their pieces.
 * @param {string[]} pieces
 * @param {number[]} scores
 * @param {string} text
 */
export const wordsOf = (pieces, scores, text) => {
  const spelled = spell(pieces, text);
  const sum = ([start, end]) => scores.slice(start, end).reduce((total, each) => total + each, 0);
  return groupPieces(pieces).map((group, word) => ({ text: spelled[word], probability: Math.exp(sum(group)) }));
};

/**
 * Return how much each target word attends to each source word; each row sums to 1. End marks do not count.
 * @param {Float32Array[]} attention
 * @param {string[]} source pieces
 * @param {string[]} target pieces
 */
export const wordAttention = (attention, source, target) => {
  const columns = groupPieces(source);
  const sum = (row, [start, end]) => row.subarray(start, end).reduce((total, each) => total + each, 0);
  return groupPieces(target).map(([start, end]) => {
    const rows = attention.slice(start, end);
    const weights = columns.map((column) => rows.reduce((total, row) => total + sum(row, column), 0));
    const whole = weights.reduce((total, each) => total + each, 0);
    return weights.map((each) => (whole ? each / whole : 0));
  });
};
