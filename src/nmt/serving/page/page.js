// The page: what the user does, what is asked of the model, and what is shown.

import * as api from "./api.js";
import { drawMarks, drawRows, element, find, list, moveFocus, openMenu, placeOf, redrawRow, shownIn, wordsOf } from "./draw.js";
import { percent, placesOf } from "./words.js";

const PAUSE_MILLISECONDS = 300;
const LONGEST_WAIT_SECONDS = 60;
const SMALLEST_SHARE = 0.1;
const MOST_NAMED = 3;
const field = find("#text");
const chosen = find("#model");
const state = { models: [], rows: [], text: "", choices: new Map() };

let controller = new AbortController();
let timer = 0;
let repeat = () => {};

// What goes wrong

const hideProblem = () => {
  clearTimeout(timer);
  find("#problem").hidden = true;
};

/** Say in one line what went wrong; if the problem says when to try again, do so then. */
const showProblem = ({ message, retryAfter, needsKey }) => {
  const wait = Math.min(retryAfter, LONGEST_WAIT_SECONDS);
  if (wait) timer = setTimeout(repeat, 1000 * wait);
  find("#problem-text").textContent = wait ? `${message} Trying again in ${wait} s.` : message;
  find("#again").hidden = needsKey;
  find("#key-form").hidden = !needsKey;
  find("#problem").hidden = false;
  if (needsKey) find("#key").focus();
};

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
    if (!(error instanceof api.Problem)) throw error;
    repeat = () => run(task, ...values);
    showProblem(error);
  }
};

// Translations

const model = () => state.models.find(({ name }) => name === chosen.value);
const languages = new Intl.DisplayNames(["en"], { type: "language", fallback: "code" });

const languageName = (code) => {
  try {
    return languages.of(code);
  } catch {
    return code;
  }
};

const keyOf = (source) => `${chosen.value}\n${source}`;
const unique = (candidates) => candidates.filter(({ text }, index) => candidates.findIndex((each) => each.text === text) === index);

/** Return a row per sentence; what was chosen in the same sentence before stays. */
const rowsOf = (text, sentences) =>
  sentences.map(({ source, start, end, candidates }, index) => ({
    source, start, end, shown: 0, original: null,
    candidates: unique(candidates),
    beginsParagraph: index > 0 && text.slice(sentences[index - 1].end, start).includes("\n"),
    ...state.choices.get(keyOf(source)),
  }));

const wholeText = () =>
  state.rows.map((row, index) => shownIn(row).text + state.text.slice(row.end, state.rows[index + 1]?.start ?? state.text.length)).join("");

const stopLooking = () => {
  find("#look").textContent = "";
  drawMarks();
};

const showWhole = () => {
  find("#announced").textContent = wholeText();
  find("#copy").hidden = !state.rows.length || !navigator.clipboard;
};

const show = (text, rows) => {
  Object.assign(state, { text, rows });
  drawRows(rows, model());
  list.removeAttribute("aria-busy");
  stopLooking();
  showWhole();
};

const translate = async (signal, milliseconds = 0) => {
  list.setAttribute("aria-busy", "true");
  stopLooking();
  await new Promise((resolve) => { setTimeout(resolve, milliseconds); });
  signal.throwIfAborted();
  const text = field.value;
  history.replaceState(null, "", `#${new URLSearchParams({ text, model: chosen.value })}`); // not sent to the server
  show(text, text.trim() ? rowsOf(text, await api.translate({ text, model: chosen.value }, signal)) : []);
};

const showModel = () => {
  find("#source-name").textContent = languageName(model().source);
  find("#target-name").textContent = languageName(model().target);
  field.lang = model().source;
};

// Words and alternatives

/** Show other candidates of a row, or another of the same ones, and remember it for the sentence. */
const choose = (place, changed) => {
  const row = state.rows[place.row];
  const original = row.original ?? { candidates: row.candidates, shown: row.shown };
  const chosenNow = { candidates: row.candidates, shown: 0, original, ...changed };
  Object.assign(row, chosenNow);
  if (row.original) state.choices.set(keyOf(row.source), chosenNow);
  else state.choices.delete(keyOf(row.source));
  redrawRow(state.rows, place, model());
  showWhole();
};

const offerWords = async (signal, place) => {
  const row = state.rows[place.row];
  const candidate = shownIn(row);
  const [start] = placesOf(candidate.words.map(({ text }) => text), candidate.text)[place.word];
  const beginning = candidate.text.slice(0, start);
  const request = { text: row.source, model: chosen.value };
  const choices = await api.choices({ ...request, beginning: beginning.trimEnd() }, signal);
  openMenu(place.element, model().target, choices, (word) => run(async (next) => {
    const [sentence] = await api.translate({ ...request, beginning: `${beginning}${word}` }, next);
    choose(place, { candidates: unique(sentence.candidates) });
  }));
};

const actOn = (target) => {
  const place = placeOf(target);
  if (!place || list.hasAttribute("aria-busy")) return;
  const button = target.closest("button");
  if (place.element && model().choices) run(offerWords, place);
  else if (button?.classList.contains("restore")) choose(place, { ...state.rows[place.row].original, original: null });
  else if (button) choose(place, { shown: Number(button.dataset.candidate) });
};

const STEPS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };

const onKey = (event) => {
  const place = placeOf(event.target);
  if (!place?.element) return;
  if (event.key in STEPS) {
    const forwards = getComputedStyle(place.element).direction === "rtl" && event.key.startsWith("Arrow") ? -1 : 1;
    moveFocus(wordsOf(list.children[place.row]), place.word, place.word + forwards * STEPS[event.key]);
  } else if (event.key === "Enter" || event.key === " ") actOn(event.target);
  else return;
  event.preventDefault();
};

/** Say how certain the model was of a word, and draw what the word attends to. */
const look = (target) => {
  const place = placeOf(target);
  if (!place?.element || list.hasAttribute("aria-busy")) return;
  const row = state.rows[place.row];
  const candidate = shownIn(row);
  const weights = candidate.attention?.[place.word] ?? [];
  const attended = candidate.source_words.slice(0, weights.length).map((name, index) => ({ name, weight: weights[index] }));
  const named = attended.filter(({ weight }) => weight >= SMALLEST_SHARE).sort((a, b) => b.weight - a.weight).slice(0, MOST_NAMED);
  const { text, probability } = candidate.words[place.word];
  const attends = named.length ? ` · attends to ${named.map(({ name, weight }) => `${name} ${percent(weight)}`).join(", ")}` : "";
  find("#look").textContent = `${text}: ${percent(probability)} certain${attends}`;
  const places = placesOf(candidate.source_words, row.source);
  drawMarks(attended.map(({ weight }, index) => [row.start + places[index][0], row.start + places[index][1], weight]));
};

const lookAway = () => {
  if (find("#choices").matches(":popover-open")) return;
  if (list.contains(document.activeElement)) look(document.activeElement);
  else stopLooking();
};

// The start

/** Show what the address contains; what was typed before the models arrived takes the place of its text. */
const openAddress = (typed = "") => {
  const shown = new URLSearchParams(location.hash.slice(1));
  const named = state.models.find(({ name }) => name === shown.get("model")) ?? state.models.find((each) => each.default);
  field.value = typed || (shown.get("text") ?? "");
  chosen.value = named.name;
  showModel();
  run(translate);
};

const start = async () => {
  state.models = await api.models();
  chosen.replaceChildren(...state.models.map(({ name, source, target }) => element("option", { value: name, text: `${name} (${source} → ${target})` })));
  openAddress(field.value);
};

const whenLoaded = (task) => (event) => { if (state.models.length) task(event); };
field.addEventListener("input", whenLoaded(() => run(translate, PAUSE_MILLISECONDS)));
chosen.addEventListener("change", () => {
  showModel();
  run(translate);
});
addEventListener("hashchange", whenLoaded(() => openAddress()));
list.addEventListener("click", (event) => { if (getSelection().isCollapsed) actOn(event.target); });
list.addEventListener("keydown", onKey);
for (const kind of ["pointerover", "focusin"]) list.addEventListener(kind, (event) => look(event.target));
for (const kind of ["pointerout", "focusout"]) list.addEventListener(kind, () => setTimeout(lookAway));
find("#again").addEventListener("click", () => repeat());
find("#key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  api.takeKey(find("#key").value);
  repeat();
});
find("#copy").addEventListener("click", async () => {
  await navigator.clipboard.writeText(wholeText());
  find("#copy").textContent = "Copied";
  setTimeout(() => { find("#copy").textContent = "Copy"; }, 1500);
});
run(start);
