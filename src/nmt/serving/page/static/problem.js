// The one line that says what went wrong, with what can be done about it: try again, or give a key.

import { find } from "./dom.js";

/** What went wrong, in one line for the user, with when to try again, and what takes a key if one is missing. */
export class Problem extends Error {
  constructor(message, { retryAfter = 0, takeKey = null } = {}) {
    super(message);
    this.retryAfter = retryAfter;
    this.takeKey = takeKey;
  }
}

const LONGEST_WAIT_SECONDS = 60;
const line = find("#problem");
let timer = 0;
let repeat = () => {};
let takeKey = null;

export const hideProblem = () => {
  clearTimeout(timer);
  line.hidden = true;
};

const repeatNow = () => {
  hideProblem();
  repeat();
};

/** Say what went wrong. If the problem says when to try again, do so then. */
export const showProblem = (problem, tryAgain) => {
  hideProblem();
  repeat = tryAgain;
  takeKey = problem.takeKey;
  const wait = Math.min(problem.retryAfter, LONGEST_WAIT_SECONDS);
  if (wait) timer = setTimeout(repeatNow, 1000 * wait);
  find("#problem-text").textContent = wait ? `${problem.message} Trying again in ${wait} s.` : problem.message;
  find("#again").hidden = Boolean(takeKey);
  find("#key-form").hidden = !takeKey;
  line.hidden = false;
  if (takeKey) find("#key").focus();
};

find("#again").addEventListener("click", repeatNow);
find("#key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  takeKey(find("#key").value);
  repeatNow();
});
