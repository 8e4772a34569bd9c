// Draw the translations: the words of each sentence, and other translations under them.

import { element, find, findAll, moveFocus } from "./dom.js";
import { isChanged, shownIn, wordsIn } from "./rows.js";
import { differences, doubt, placesOf } from "./words.js";

export const list = find("#sentences");

/** Return text whose words are made by `make(word, index)`; what stands between the words is kept. */
const withWords = (words, text, make) => {
  const parts = [];
  let from = 0;
  placesOf(words, text).forEach(([start, end], index) => {
    parts.push(text.slice(from, start), make(text.slice(start, end), index));
    from = end;
  });
  return [...parts, text.slice(from)];
};

const wordOf = (cell, differs) => (text, index) => {
  const opens = cell.model.choices ? { role: "button", "aria-haspopup": "menu" } : {};
  const word = element("span", { text, tabindex: index ? "-1" : "0", ...opens });
  word.dataset.word = index;
  word.dataset.doubt = doubt(shownIn(cell).words[index].probability);
  word.classList.toggle("differs", differs[index]);
  return word;
};

const wordLine = (cell, other, number) => {
  const { model } = cell;
  const line = element("p", {
    className: "words", role: "toolbar", lang: model.target, dir: "auto",
    "aria-label": `Words of sentence ${number}, ${model.name}: arrow keys move${model.choices ? ", Enter offers other words" : ""}`,
  });
  const words = wordsIn(shownIn(cell));
  const differs = other ? differences(words, wordsIn(shownIn(other))) : words.map(() => false);
  line.append(...withWords(words, shownIn(cell).text, wordOf(cell, differs)));
  return line;
};

const alternativeOf = (cell, candidate, place) => {
  const words = wordsIn(candidate);
  const differs = differences(words, wordsIn(shownIn(cell)));
  const button = element("button", { type: "button", lang: cell.model.target, dir: "auto" });
  button.dataset.candidate = place;
  const make = (text, index) => element("span", { text, className: differs[index] ? "differs" : "" });
  button.append(...withWords(words, candidate.text, make));
  const item = element("li");
  item.append(button);
  return item;
};

const alternatives = (cell) => {
  const found = element("ul", { className: "alternatives", "aria-label": "Other translations" });
  cell.candidates.forEach((candidate, place) => {
    if (place !== cell.shown) found.append(alternativeOf(cell, candidate, place));
  });
  return found;
};

const drawCell = (cell, other, number) => {
  const made = element("div", { className: "cell" });
  made.dataset.model = cell.model.name;
  const plain = element("p", { className: "unseen", text: shownIn(cell).text, lang: cell.model.target });
  made.append(plain, wordLine(cell, other, number), alternatives(cell));
  if (isChanged(cell)) made.append(element("button", { type: "button", className: "restore", text: "As first translated" }));
  return made;
};

const drawRow = (row, index) => {
  const made = element("li", { className: "row" });
  const [first, second] = row.cells;
  row.cells.forEach((cell) => made.append(drawCell(cell, cell === first ? second : first, index + 1)));
  made.classList.toggle("paragraph", row.beginsParagraph);
  return made;
};

export const drawRows = (rows) => list.replaceChildren(...rows.map(drawRow));

/** Draw one row again and put the focus on the same word. */
export const redrawRow = (rows, { row, cell, word }) => {
  list.children[row].replaceWith(drawRow(rows[row], row));
  const words = wordsOf(list.children[row].children[cell]);
  if (words.length) moveFocus(words, 0, word);
};

export const wordsOf = (within) => findAll("[data-word]", within);

/** Return which row, cell and word an element of the list belongs to. */
export const placeOf = (inside) => {
  const cell = inside.closest(".cell");
  const row = cell?.closest("li.row");
  if (!row) return null;
  const word = inside.closest("[data-word]");
  return {
    row: [...list.children].indexOf(row),
    cell: [...row.children].indexOf(cell),
    word: word ? Number(word.dataset.word) : -1,
    element: word,
  };
};
