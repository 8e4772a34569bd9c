// Split text into sentences, by the rules that nmt's server uses; their patterns and lists come from there.

/** @typedef {{start: number, end: number}} Span */

const escaped = (characters) => characters.replace(/[\]\\^-]/gu, "\\$&");

/** Return the characters of a text as the server counts them: a pair of surrogates is one. */
const charactersOf = (text) => [...text];

export class Splitter {
  /**
   * @param {{line: string, token: string, initials: string, stops: string[], wide_stops: string, opening: string,
   *   closing: string, abbreviations: string[], max_characters: number}} rules
   */
  constructor(rules) {
    this.rules = rules;
    this.abbreviations = new Set(rules.abbreviations);
    this.initials = new RegExp(`^(?:${rules.initials.replaceAll("\\w", "[\\p{L}\\p{N}_]")})$`, "u");
    this.opening = new RegExp(`^[${escaped(rules.opening)}]+`, "u");
    this.closing = new RegExp(`[${escaped(rules.closing)}]+$`, "u");
  }

  /**
   * Return the sentences, without the white space around them; no sentence continues on another line.
   * @param {string} text
   * @returns {Span[]}
   */
  split(text) {
    const found = [];
    for (const line of text.matchAll(new RegExp(this.rules.line, "gu"))) {
      const tokens = [...line[0].matchAll(new RegExp(this.rules.token, "gu"))];
      found.push(...this.#ofLine(text, tokens.map((token) => this.#spanOf(line.index + token.index, token[0]))));
    }
    return found;
  }

  #spanOf(start, text) {
    return { start, end: start + text.length };
  }

  *#ofLine(text, tokens) {
    const { max_characters: most } = this.rules;
    let start = null;
    for (const [place, token] of tokens.entries()) {
      start ??= token.start;
      const following = tokens[place + 1];
      const continues = following && !this.#ends(text, token, following);
      if (continues && charactersOf(text.slice(start, following.end)).length <= most) continue;
      yield* this.#cut(start, text.slice(start, token.end));
      start = null;
    }
  }

  /** Cut a sentence that is too long. */
  *#cut(start, sentence) {
    const { max_characters: most } = this.rules;
    const characters = charactersOf(sentence);
    for (let first = 0; first < characters.length; first += most) {
      const span = this.#spanOf(start, characters.slice(first, first + most).join(""));
      yield span;
      start = span.end;
    }
  }

  /** Return whether a sentence ends between two tokens. */
  #ends(text, token, following) {
    const { stops, wide_stops: wide } = this.rules;
    const word = text.slice(token.start, token.end).replace(this.closing, "");
    const next = text.slice(following.start, following.end).replace(this.opening, "");
    if ([...wide].some((stop) => word.endsWith(stop))) return true;
    if (!stops.some((stop) => word.endsWith(stop)) || /^\p{Lowercase}/u.test(next)) return false;
    return !(word.endsWith(".") && this.#isAbbreviation(word.slice(0, -1).replace(this.opening, "")));
  }

  /** Return whether a word before a period is an abbreviation, an initial or a number in an order, such as 3. */
  #isAbbreviation(word) {
    if (/^\p{Nd}+$/u.test(word)) return charactersOf(word).length <= 2;
    return /^\p{L}$/u.test(word) || this.abbreviations.has(word.toLowerCase()) || this.initials.test(word);
  }
}
