// The menu of words that can stand in the place of another.

import { element, find, findAll, moveFocus } from "./dom.js";
import { percent } from "./words.js";

const menu = find("#choices");
const GAP = 4;
let pick = () => {};
let opener = null;

const itemOf = ({ text, probability }, current) => {
  const item = element("button", { type: "button", role: "menuitemradio", tabindex: "-1", "aria-checked": text === current });
  item.dataset.choice = text;
  item.append(element("span", { text }), element("span", { text: percent(probability), className: "share" }));
  return item;
};

/** Place the menu below the word, or above it if there is no room below. */
const placeAt = (word) => {
  const box = word.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = menu;
  const left = Math.max(GAP, Math.min(box.left, document.documentElement.clientWidth - width - GAP));
  const below = box.bottom + GAP;
  const top = below + height > innerHeight && box.top > height + GAP ? box.top - height - GAP : below;
  menu.style.left = `${left + scrollX}px`;
  menu.style.top = `${top + scrollY}px`;
};

/** Offer words in the place of a word; `picked` is called with the one that the user picks. */
export const openMenu = (word, language, choices, picked) => {
  const current = word.textContent;
  pick = picked;
  opener = word;
  menu.lang = language;
  menu.replaceChildren(...choices.map((choice) => itemOf(choice, current)));
  menu.showPopover();
  placeAt(word);
  moveFocus(findAll("button", menu), -1, 0);
};

const close = () => {
  menu.hidePopover();
  opener?.focus();
};

menu.addEventListener("click", (event) => {
  const item = event.target.closest("button");
  if (!item) return;
  close();
  pick(item.dataset.choice);
});

menu.addEventListener("keydown", (event) => {
  const items = findAll("button", menu);
  const at = items.indexOf(document.activeElement);
  const to = { ArrowDown: (at + 1) % items.length, ArrowUp: (at + items.length - 1) % items.length, Home: 0, End: items.length - 1 }[event.key];
  if (to !== undefined) moveFocus(items, at, to);
  else if (event.key === "Tab" || event.key === "Escape") close();
  else return;
  event.preventDefault();
});
