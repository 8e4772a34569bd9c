// Text to word pieces and back, as SentencePiece's BPE does it, from tokenizer.json.

export const UNKNOWN = 0;
export const PAD = 1;
export const BEGIN = 2;
export const END = 3;
export const SPACE = "▁";
const UNKNOWN_TEXT = " ⁇ ";
const WHITE_SPACE =
  "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a" +
  "\u2028\u2029\u202f\u205f\u3000";

export class Tokenizer {
  /** @param {{model: {vocab: Record<string, number>, merges: [string, string][]}}} content that of tokenizer.json */
  constructor({ model: { vocab, merges } }) {
    /** @type {string[]} the pieces by their ids */
    this.pieces = [];
    for (const [piece, id] of Object.entries(vocab)) this.pieces[id] = piece;
    this.ids = new Map(this.pieces.map((piece, id) => [piece, id]));
    /** @type {Map<string, number>} the pieces that two others make; those with a lower rank are made first */
    this.ranks = new Map();
    merges.forEach(([left, right], rank) => {
      if (!this.ranks.has(left + right)) this.ranks.set(left + right, rank);
    });
    const usual = new Set(this.pieces.filter((piece) => piece.length > 1).join(""));
    const rare = [...WHITE_SPACE].filter((character) => !usual.has(character));
    /** White space that was rare in the training text. */
    this.rareSpaces = new RegExp(`[${rare.join("")}]`, "gu");
  }

  /**
   * Return the ids of a sentence to translate, with single spaces for the white space that models know little of.
   * @param {string} text
   * @returns {number[]}
   */
  encodeInput(text) {
    return this.encode(text.replace(this.rareSpaces, " ").split(" ").filter(Boolean).join(" "));
  }

  /**
   * Return the ids of a text, without special ones.
   * @param {string} text
   * @returns {number[]}
   */
  encode(text) {
    if (!text) return [];
    const ids = this.#merged([...(SPACE + text).replaceAll(" ", SPACE)]).map((piece) => this.ids.get(piece) ?? UNKNOWN);
    return ids.filter((id, place) => id !== UNKNOWN || ids[place - 1] !== UNKNOWN);
  }

  /**
   * Return the text of ids.
   * @param {number[]} ids
   * @returns {string}
   */
  decode(ids) {
    const text = ids.map((id) => (id === UNKNOWN ? UNKNOWN_TEXT : this.pieces[id].replaceAll(SPACE, " "))).join("");
    return this.pieces[ids[0]]?.startsWith(SPACE) ? text.slice(1) : text;
  }

  /** Merge the pair with the lowest rank, the first of several, until no pair makes a piece. */
  #merged(symbols) {
    const rankOf = (place) => {
      if (place >= symbols.length - 1) return Infinity;
      return this.ranks.get(symbols[place] + symbols[place + 1]) ?? Infinity;
    };
    const ranks = symbols.map((_, place) => rankOf(place));
    for (;;) {
      let best = 0;
      for (let place = 1; place < ranks.length; place += 1) if (ranks[place] < ranks[best]) best = place;
      if (ranks[best] === Infinity) return symbols;
      symbols.splice(best, 2, symbols[best] + symbols[best + 1]);
      ranks.splice(best, 1);
      ranks[best] = rankOf(best);
      if (best) ranks[best - 1] = rankOf(best - 1);
    }
  }
}
