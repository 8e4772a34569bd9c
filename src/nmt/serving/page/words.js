// Words of a sentence: where they stand, which differ from another sentence's, how certain the model was of them.

const UNCERTAIN = 0.7;
const VERY_UNCERTAIN = 0.4;

/** Return the start and end of each word in the text, in which the words stand in this order. */
export const placesOf = (words, text) => {
  let end = 0;
  return words.map((word) => {
    const start = text.indexOf(word, end);
    if (start < 0) return [end, end];
    end = start + word.length;
    return [start, end];
  });
};

/** Return 0 for a word that the model was certain of, 1 or 2 for one that it was less certain of. */
export const doubt = (probability) => (probability < VERY_UNCERTAIN ? 2 : probability < UNCERTAIN ? 1 : 0);

export const percent = (share) => (share < 0.005 ? "<1 %" : `${Math.round(100 * share)} %`);

/** Return the lengths of the longest common subsequences of the ends of two lists. */
const commonLengths = (words, others) => {
  const lengths = Array.from({ length: words.length + 1 }, () => new Uint16Array(others.length + 1));
  for (let i = words.length - 1; i >= 0; i -= 1) {
    for (let j = others.length - 1; j >= 0; j -= 1) {
      lengths[i][j] = words[i] === others[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  return lengths;
};

/** Return for each word whether it is missing in the longest common subsequence with the other words. */
export const differences = (words, others) => {
  const lengths = commonLengths(words, others);
  const differs = words.map(() => true);
  for (let i = 0, j = 0; i < words.length && j < others.length;) {
    if (words[i] === others[j]) {
      differs[i] = false;
      i += 1;
      j += 1;
    } else if (lengths[i + 1][j] >= lengths[i][j + 1]) i += 1;
    else j += 1;
  }
  return differs;
};
