// The page: what the user does, what is asked of the models, and what is shown.

import { readAddress, writeAddress } from "./address.js";
import * as api from "./api.js";
import { element, find, moveFocus } from "./dom.js";
import { followWords, stopLooking } from "./looking.js";
import { openMenu } from "./menu.js";
import { hideProblem, Problem, showProblem } from "./problem.js";
import { choose, forgetOthers, restore, rowsOf, shownIn, wholeText, wordsIn } from "./rows.js";
import { drawRows, list, placeOf, redrawRow, wordsOf } from "./sentences.js";
import { startTheme } from "./theme.js";
import { placesOf } from "./words.js";

const PAUSE_MILLISECONDS = 300;
const field = find("#text");
const first = find("#first");
const second = find("#second");
const state = { models: [], rows: [], text: "", choices: new Map() };

let controller = new AbortController();

/** Run a task with a signal. The next task aborts it, and its answer is then ignored. */
const run = async (task, ...values) => {
  controller.abort();
  controller = new AbortController();
  const { signal } = controller;
  hideProblem();
  try {
    await task(signal, ...values);
  } catch (error) {
    if (signal.aborted) return;
    if (!(error instanceof Problem)) throw error;
    showProblem(error, () => run(task, ...values));
  }
};

const pause = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });

// Models

const named = (name) => state.models.find((model) => model.name === name);
const chosenModels = () => [first, second].flatMap(({ value }) => named(value) ?? []);
const languages = new Intl.DisplayNames(["en"], { type: "language", fallback: "code" });

const languageName = (code) => {
  try {
    return languages.of(code);
  } catch {
    return code;
  }
};

const optionOf = (value, text) => {
  const option = element("option", { text });
  option.value = value;
  return option;
};

/** Offer models that translate between the same languages for comparison, and name the languages. */
const showModels = (compared) => {
  const { name, source, target } = named(first.value);
  const others = state.models.filter((model) => model.name !== name && model.source === source && model.target === target);
  second.replaceChildren(optionOf("", "none"), ...others.map((model) => optionOf(model.name, model.name)));
  second.value = others.some((model) => model.name === compared) ? compared : "";
  find("#compare").hidden = !others.length;
  find("#source-name").textContent = languageName(source);
  find("#target-name").textContent = languageName(target);
  field.lang = source;
  const models = chosenModels();
  document.body.classList.toggle("comparing", models.length > 1);
  find("#names").replaceChildren(...models.map((model) => element("span", { text: model.name })));
};

// Translations

const show = (text, rows) => {
  Object.assign(state, { text, rows });
  forgetOthers(rows, state.choices);
  drawRows(rows);
  list.removeAttribute("aria-busy");
  stopLooking();
  showWhole();
};

const showWhole = () => {
  find("#announced").textContent = state.rows.length ? wholeText(state.rows, state.text) : "";
  find("#copy").hidden = !state.rows.length || chosenModels().length > 1 || !navigator.clipboard;
};

const translate = async (signal, milliseconds = 0) => {
  list.setAttribute("aria-busy", "true");
  stopLooking();
  await pause(milliseconds);
  signal.throwIfAborted();
  const text = field.value;
  const models = chosenModels();
  writeAddress({ text, model: first.value, second: second.value });
  if (!text.trim()) return show(text, []);
  const translations = await Promise.all(models.map(({ name }) => api.translate({ text, model: name }, signal)));
  show(text, rowsOf(text, models, translations, state.choices));
};

// Words and alternatives

const cellAt = (place) => state.rows[place.row].cells[place.cell];

const redraw = (place) => {
  redrawRow(state.rows, place);
  showWhole();
};

const offerWords = async (signal, place) => {
  const cell = cellAt(place);
  const candidate = shownIn(cell);
  const [start] = placesOf(wordsIn(candidate), candidate.text)[place.word];
  const beginning = candidate.text.slice(0, start);
  const request = { text: state.rows[place.row].source, model: cell.model.name, beginning: beginning.trimEnd() };
  const choices = await api.choices(request, signal);
  openMenu(place.element, cell.model.target, choices, (word) => run(takeWord, place, `${beginning}${word}`));
};

const takeWord = async (signal, place, beginning) => {
  const cell = cellAt(place);
  const request = { text: state.rows[place.row].source, model: cell.model.name, beginning };
  const { sentences } = await api.translate(request, signal);
  choose(cell, { candidates: sentences[0].candidates }, state.choices);
  redraw(place);
};

const actOn = (target) => {
  const place = placeOf(target);
  if (!place || list.hasAttribute("aria-busy")) return;
  const cell = cellAt(place);
  const button = target.closest("button");
  if (place.element && cell.model.choices) run(offerWords, place);
  else if (button) {
    if (button.classList.contains("restore")) restore(cell, state.choices);
    else choose(cell, { shown: Number(button.dataset.candidate) }, state.choices);
    redraw({ ...place, word: 0 });
  }
};

const STEPS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };

const onKey = (event) => {
  const place = placeOf(event.target);
  if (!place?.element) return;
  if (event.key in STEPS) {
    const forwards = getComputedStyle(place.element).direction === "rtl" && event.key.startsWith("Arrow") ? -1 : 1;
    moveFocus(wordsOf(event.target.closest(".words")), place.word, place.word + forwards * STEPS[event.key]);
  } else if (event.key === "Enter" || event.key === " ") actOn(event.target);
  else return;
  event.preventDefault();
};

// The start

const copy = (text, button) => {
  const usual = button.textContent;
  return async () => {
    await navigator.clipboard.writeText(text());
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = usual; }, 1500);
  };
};

/** Show what the address contains; what was typed before the models arrived takes the place of its text. */
const openAddress = (typed = "") => {
  const { text, model, second: compared } = readAddress();
  field.value = typed || text;
  first.value = named(model) ? model : (state.models.find((each) => each.default) ?? state.models[0]).name;
  showModels(compared);
  run(translate);
};

const start = async () => {
  state.models = await api.models();
  first.replaceChildren(...state.models.map(({ name, source, target }) => optionOf(name, `${name} (${source} → ${target})`)));
  openAddress(field.value);
};

const listen = () => {
  field.addEventListener("input", () => { if (state.models.length) run(translate, PAUSE_MILLISECONDS); });
  for (const select of [first, second]) {
    select.addEventListener("change", () => {
      showModels(second.value);
      run(translate);
    });
  }
  list.addEventListener("click", (event) => { if (getSelection().isCollapsed) actOn(event.target); });
  list.addEventListener("keydown", onKey);
  addEventListener("hashchange", () => { if (state.models.length) openAddress(); });
  for (const [name, text] of [["#copy", () => wholeText(state.rows, state.text)], ["#link", () => location.href]]) {
    find(name).addEventListener("click", copy(text, find(name)));
  }
  find("#link").hidden = !navigator.clipboard;
  followWords(() => state.rows);
};

startTheme();
listen();
run(start);
