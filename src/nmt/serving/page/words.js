// Words of a sentence: where they stand, how certain the model was of them.

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
