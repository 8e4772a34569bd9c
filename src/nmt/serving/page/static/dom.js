// Find and make elements. Text is only ever set as text, so nothing in a translation can become markup.

export const find = (selector, within = document) => within.querySelector(selector);
export const findAll = (selector, within = document) => [...within.querySelectorAll(selector)];

/** Make an element with a text, a class, and attributes. */
export const element = (tag, { text, className, ...attributes } = {}) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
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
