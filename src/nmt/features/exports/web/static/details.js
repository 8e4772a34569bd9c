// What is known of the words of a translation: how probable they are, and what they attend to.

import { logSoftmax } from "./beam.js";
import { END, SPACE } from "./tokenizer.js";

/** @typedef {[number, number]} Range places from the first up to the second */
/** @typedef {{text: string, pieces: number[]}} Word a word, and the places of its pieces */

const UNKNOWN_PIECE = "<unk>";
const UNKNOWN_MARK = "⁇";

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

const wordsIn = (text) => (text.trim() ? text.trim().split(/\s+/u) : []);

/** Return what a piece adds to a text, without spaces. */
const spelled = (piece) => (piece === UNKNOWN_PIECE ? UNKNOWN_MARK : wordsIn(piece.replaceAll(SPACE, "")).join(""));

/**
 * Return the words of a text with the places of their pieces; if they cannot be matched, the words that the pieces spell.
 * @param {string[]} pieces
 * @param {string} text
 * @returns {Word[]}
 */
export const matchWords = (pieces, text) => {
  const names = wordsIn(text);
  const isMatch = names.join("").startsWith(pieces.map(spelled).join(""));
  if (isMatch || !names.length) return withPieces(names, pieces);
  const groups = groupPieces(pieces).map(([start, end]) => pieces.map((_, place) => place).slice(start, end));
  const spell = (group) => group.map((place) => pieces[place]).join("").replaceAll(SPACE, "");
  const texts = groups.length === names.length ? names : groups.map(spell);
  return groups.map((group, word) => ({ text: texts[word], pieces: group }));
};

/** Give each piece to the word in which it begins; the characters of both are the same, except for spaces. */
const withPieces = (names, pieces) => {
  const words = names.map((text) => ({ text, pieces: [] }));
  let [start, word, end] = [0, 0, names[0]?.length ?? 0];
  pieces.forEach((piece, place) => {
    while (start >= end && word < names.length - 1) end += names[++word].length;
    if (start < end) words[word].pieces.push(place); // else a space at the end
    start += spelled(piece).length;
  });
  return words;
};

/**
 * Return how probable each token of a translation is, given the logits at each place.
 * @param {Float32Array[]} logits
 * @param {number[]} ids
 */
export const tokenScores = (logits, ids) => [...ids, END].map((id, place) => logSoftmax(logits[place])[id]);

/**
 * Return the words with their probabilities: the products of those of their pieces.
 * @param {Word[]} words
 * @param {number[]} scores
 */
export const wordProbabilities = (words, scores) =>
  words.map(({ text, pieces }) => {
    const total = pieces.reduce((sum, place) => sum + scores[place], 0);
    return { text, probability: Math.exp(total) };
  });

/**
 * Return how much each target word attends to each source word; each row sums to 1. End marks do not count.
 * @param {Float32Array[]} attention
 * @param {Word[]} source
 * @param {Word[]} target
 */
export const wordAttention = (attention, source, target) => {
  const sum = (row, columns) => columns.reduce((total, column) => total + row[column], 0);
  return target.map((word) => {
    const rows = word.pieces.map((place) => attention[place]);
    const weights = source.map((each) => rows.reduce((total, row) => total + sum(row, each.pieces), 0));
    const whole = weights.reduce((total, each) => total + each, 0);
    return weights.map((each) => (whole ? each / whole : 0));
  });
};
