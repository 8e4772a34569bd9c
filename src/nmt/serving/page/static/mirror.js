// The mirror lies behind the text field and has the same text and lines. It makes the field as high as its text, and
// it draws on it: a text field itself cannot have coloured words.

import { element, find } from "./dom.js";

const field = find("#text");
const mirror = find("#mirror");
const ZERO_WIDTH_SPACE = "\u200b"; // makes an empty last line count

/** Draw marks on the text: `[start, end, weight]` each, in order and without overlap. */
export const drawMarks = (marks = []) => {
  const text = field.value;
  const parts = [];
  let from = 0;
  for (const [start, end, weight] of marks) {
    const mark = element("span", { text: text.slice(start, end) });
    mark.style.setProperty("--weight", weight.toFixed(3));
    parts.push(text.slice(from, start), mark);
    from = end;
  }
  mirror.replaceChildren(...parts, text.slice(from) + ZERO_WIDTH_SPACE);
};
