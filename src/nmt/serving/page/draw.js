// Draw the translations: the words of each sentence, other translations under them, and the menu of other words.
// Text is only ever set as text, so nothing in a translation can become markup.

import { doubt, percent, placesOf } from "./words.js";

export const find = (selector, within = document) => within.querySelector(selector);
export const findAll = (selector, within = document) => [...within.querySelectorAll(selector)];
export const list = find("#sentences");
const menu = find("#choices");
const GAP = 4;
const ZERO_WIDTH_SPACE = "\u200b"; // makes an empty last line count

/** Make an element with a text, a class, data and attributes. */
export const element = (tag, { text, className, data = {}, ...attributes } = {}) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  Object.assign(made.dataset, data);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
};

/** Move the focus among elements of which only one is in the tab order. */
export const moveFocus = (elements, from, to) => {
  const next = elements[Math.max(0, Math.min(elements.length - 1, to))];
  elements[from]?.setAttribute("tabindex", "-1");
  next.setAttribute("tabindex", "0");
  next.focus();
};

export const shownIn = (row) => row.candidates[row.shown];
const wordsIn = (candidate) => (candidate.words ?? []).map(({ text }) => text);

/** Return text whose words are made by `make(word, index)`; what stands between the words is kept. */
const withWords = (candidate, make) => {
  const parts = [];
  let from = 0;
  placesOf(wordsIn(candidate), candidate.text).forEach(([start, end], index) => {
    parts.push(candidate.text.slice(from, start), make(candidate.text.slice(start, end), index));
    from = end;
  });
  return [...parts, candidate.text.slice(from)];
};

const wordLine = (row, model, number) => {
  const opens = model.choices ? { role: "button", "aria-haspopup": "menu" } : {};
  const line = element("p", {
    className: "words", role: "toolbar", lang: model.target, dir: "auto",
    "aria-label": `Words of sentence ${number}: arrow keys move${model.choices ? ", Enter offers other words" : ""}`,
  });
  line.append(...withWords(shownIn(row), (text, index) => {
    const data = { word: index, doubt: doubt(shownIn(row).words[index].probability) };
    return element("span", { text, tabindex: index ? "-1" : "0", data, ...opens });
  }));
  return line;
};

const alternativeOf = (row, candidate, place, model) => {
  const shown = new Set(wordsIn(shownIn(row)));
  const button = element("button", { type: "button", lang: model.target, dir: "auto", data: { candidate: place } });
  button.append(...withWords(candidate, (text) => element("span", { text, className: shown.has(text) ? "" : "differs" })));
  const item = element("li");
  item.append(button);
  return item;
};

const drawRow = (row, number, model) => {
  const made = element("li", { className: row.beginsParagraph ? "paragraph" : "" });
  const plain = element("p", { className: "unseen", text: shownIn(row).text, lang: model.target });
  const others = element("ul", { className: "alternatives", "aria-label": "Other translations" });
  row.candidates.forEach((candidate, place) => {
    if (place !== row.shown) others.append(alternativeOf(row, candidate, place, model));
  });
  made.append(plain, wordLine(row, model, number), others);
  if (row.original) made.append(element("button", { type: "button", className: "restore", text: "As first translated" }));
  return made;
};

export const drawRows = (rows, model) => list.replaceChildren(...rows.map((row, index) => drawRow(row, index + 1, model)));

export const wordsOf = (inside) => findAll("[data-word]", inside);

/** Return the row and the word that an element of the list belongs to. */
export const placeOf = (inside) => {
  const row = inside.closest("#sentences > li");
  if (!row) return null;
  const word = inside.closest("[data-word]");
  return { row: [...list.children].indexOf(row), word: word ? Number(word.dataset.word) : -1, element: word };
};

/** Draw a row again, and put the focus on the same word. */
export const redrawRow = (rows, { row, word }, model) => {
  list.children[row].replaceWith(drawRow(rows[row], row + 1, model));
  const words = wordsOf(list.children[row]);
  if (words.length) moveFocus(words, 0, Math.max(0, word));
};

/** Draw marks on the text, `[start, end, weight]` each: they lie on a mirror behind the field, which has the same text. */
export const drawMarks = (marks = []) => {
  const text = find("#text").value;
  const parts = [];
  let from = 0;
  for (const [start, end, weight] of marks) {
    const mark = element("span", { text: text.slice(start, end) });
    mark.style.setProperty("--weight", weight.toFixed(3));
    parts.push(text.slice(from, start), mark);
    from = end;
  }
  find("#mirror").replaceChildren(...parts, text.slice(from) + ZERO_WIDTH_SPACE);
};

/** Offer words in the place of a word; `picked` is called with the one that the user picks. */
export const openMenu = (word, language, choices, picked) => {
  menu.lang = language;
  menu.replaceChildren(...choices.map(({ text, probability }) => {
    const checked = text === word.textContent;
    const item = element("button", { type: "button", role: "menuitemradio", tabindex: "-1", "aria-checked": checked });
    item.append(element("span", { text }), element("span", { text: percent(probability), className: "share" }));
    item.addEventListener("click", () => {
      close();
      picked(text);
    });
    return item;
  }));
  const close = () => {
    menu.hidePopover();
    word.focus();
  };
  menu.onkeydown = (event) => {
    const items = findAll("button", menu);
    const at = items.indexOf(document.activeElement);
    const to = { ArrowDown: (at + 1) % items.length, ArrowUp: (at + items.length - 1) % items.length }[event.key];
    if (to !== undefined) moveFocus(items, at, to);
    else if (event.key === "Tab" || event.key === "Escape") close();
    else return;
    event.preventDefault();
  };
  menu.showPopover();
  const box = word.getBoundingClientRect();
  const left = Math.max(GAP, Math.min(box.left, document.documentElement.clientWidth - menu.offsetWidth - GAP));
  const below = box.bottom + GAP;
  const top = below + menu.offsetHeight > innerHeight && box.top > menu.offsetHeight + GAP ? box.top - menu.offsetHeight - GAP : below;
  Object.assign(menu.style, { left: `${left + scrollX}px`, top: `${top + scrollY}px` });
  moveFocus(findAll("button", menu), -1, 0);
};
