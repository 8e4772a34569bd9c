// What is shown: a row per sentence, and in it a cell per model. A cell remembers what the user chose in it.

const unique = (candidates) => candidates.filter(({ text }, index) => candidates.findIndex((each) => each.text === text) === index);

const cellOf = (model, sentence, choices) => {
  const key = `${model.name}\n${sentence.source}`;
  const original = { candidates: unique(sentence.candidates), shown: 0 };
  return { key, model, original, ...(choices.get(key) ?? original) };
};

/** Return the rows of the models' translations of one text; what was chosen in the same sentences before stays. */
export const rowsOf = (text, models, translations, choices) =>
  translations[0].sentences.map(({ source, start, end }, index, sentences) => ({
    source,
    start,
    end,
    beginsParagraph: index > 0 && text.slice(sentences[index - 1].end, start).includes("\n"),
    cells: models.flatMap((model, place) => {
      const same = translations[place].sentences[index];
      return same ? [cellOf(model, same, choices)] : [];
    }),
  }));

export const shownIn = (cell) => cell.candidates[cell.shown];
export const wordsIn = (candidate) => (candidate.words ?? []).map(({ text }) => text);
export const isChanged = (cell) => cell.candidates !== cell.original.candidates || cell.shown !== cell.original.shown;

/** Show other candidates, or another of the same ones, and remember it in `choices`. */
export const choose = (cell, { candidates = cell.candidates, shown = 0 }, choices) => {
  Object.assign(cell, { candidates: unique(candidates), shown });
  choices.set(cell.key, { candidates: cell.candidates, shown });
};

export const restore = (cell, choices) => {
  Object.assign(cell, cell.original);
  choices.delete(cell.key);
};

/** Forget what was chosen in sentences that no longer exist. */
export const forgetOthers = (rows, choices) => {
  const keys = new Set(rows.flatMap(({ cells }) => cells.map(({ key }) => key)));
  for (const key of choices.keys()) if (!keys.has(key)) choices.delete(key);
};

/** Return the translation of the whole text by one model, with what stands between the sentences of the source. */
export const wholeText = (rows, text, place = 0) =>
  rows.map(({ end, cells }, index) => shownIn(cells[place]).text + text.slice(end, rows[index + 1]?.start ?? text.length)).join("");
