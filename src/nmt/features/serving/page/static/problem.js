// The one line that says what went wrong, with what can be done about it: try again, or give a key.

import { find } from "./dom.js";
import { setKey } from "./api.js";

const LONGEST_WAIT_SECONDS = 60;
const line = find("#problem");
let timer = 0;
let repeat = () => {};

export const hideProblem = () => {
  clearTimeout(timer);
  line.hidden = true;
};

const repeatNow = () => {
  hideProblem();
  repeat();
};

/** Say what went wrong. If the server says when to try again, do so then. */
export const showProblem = (error, tryAgain) => {
  hideProblem();
  repeat = tryAgain;
  const wait = Math.min(error.retryAfter ?? 0, LONGEST_WAIT_SECONDS);
  if (wait) timer = setTimeout(repeatNow, 1000 * wait);
  find("#problem-text").textContent = wait ? `${error.message} Trying again in ${wait} s.` : error.message;
  find("#again").hidden = Boolean(error.needsKey);
  find("#key-form").hidden = !error.needsKey;
  line.hidden = false;
  if (error.needsKey) find("#key").focus();
};

find("#again").addEventListener("click", repeatNow);
find("#key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  setKey(find("#key").value);
  repeatNow();
});
