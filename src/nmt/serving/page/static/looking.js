// Point at a word, or move the focus to it, to see what it attends to and how certain the model was of it.

import { find } from "./dom.js";
import { drawMarks } from "./mirror.js";
import { shownIn } from "./rows.js";
import { list, placeOf } from "./sentences.js";
import { percent, placesOf } from "./words.js";

const SMALLEST_SHARE = 0.1;
const MOST_NAMED = 3;
const line = find("#look");

/** Return the source words with the attention that a word pays to each; none if the model does not tell. */
const attended = (candidate, word) => {
  const weights = candidate.attention?.[word] ?? [];
  return candidate.source_words.slice(0, weights.length).map((name, index) => ({ name, weight: weights[index] }));
};

const namesOf = (words) =>
  words
    .filter(({ weight }) => weight >= SMALLEST_SHARE)
    .sort((a, b) => b.weight - a.weight)
    .slice(0, MOST_NAMED)
    .map(({ name, weight }) => `${name} ${percent(weight)}`);

const describe = (candidate, word, differs) => {
  const { text, probability } = candidate.words[word];
  const names = namesOf(attended(candidate, word));
  const parts = [`${text}: ${percent(probability)} certain`];
  if (names.length) parts.push(`attends to ${names.join(", ")}`);
  if (differs) parts.push("differs from the other model");
  return parts.join(" · ");
};

const marksOf = (row, candidate, word) => {
  const places = placesOf(candidate.source_words, row.source);
  return attended(candidate, word).map(({ weight }, index) => [...places[index].map((place) => row.start + place), weight]);
};

/** Follow the pointer and the focus; `rows` returns what is shown. */
export const followWords = (rows) => {
  const look = (target) => {
    const place = placeOf(target);
    if (!place?.element || list.hasAttribute("aria-busy")) return;
    const row = rows()[place.row];
    const candidate = shownIn(row.cells[place.cell]);
    line.textContent = describe(candidate, place.word, place.element.classList.contains("differs"));
    drawMarks(marksOf(row, candidate, place.word));
  };
  const lookAway = () => {
    if (find("#choices").matches(":popover-open")) return;
    const focused = document.activeElement;
    if (list.contains(focused)) look(focused);
    else stopLooking();
  };
  for (const kind of ["pointerover", "focusin"]) list.addEventListener(kind, (event) => look(event.target));
  for (const kind of ["pointerout", "focusout"]) list.addEventListener(kind, () => setTimeout(lookAway));
};

export const stopLooking = () => {
  line.textContent = "";
  drawMarks();
};
