// Requests to the server. Addresses are relative, so that a proxy may serve the page under any path.

const NEEDS_KEY = [401, 403];
const ALTERNATIVES = 3;
const CHOICES = 8;
let key = "";

/** What went wrong, in one line for the user, with when to try again, and whether a key is needed. */
export class Problem extends Error {
  constructor(message, { retryAfter = 0, needsKey = false } = {}) {
    super(message);
    Object.assign(this, { retryAfter, needsKey });
  }
}

export const takeKey = (given) => { key = given; };

const request = async (path, options) => {
  let response;
  let text;
  try {
    response = await fetch(path, options);
    text = await response.text(); // it may break off
  } catch (error) {
    throw error.name === "AbortError" ? error : new Problem("The server cannot be reached.");
  }
  let answer = null;
  try {
    answer = JSON.parse(text);
  } catch { /* from a proxy in between, which has a page of its own */ }
  if (response.ok && answer) return answer;
  if (response.ok) throw new Problem("The answer is not from the server: load the page again.");
  throw new Problem(answer?.error ?? `The server answered with status ${response.status}.`, {
    retryAfter: Number(response.headers.get("Retry-After")) || 0,
    needsKey: NEEDS_KEY.includes(response.status),
  });
};

const post = (path, body, signal) =>
  request(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(key ? { ...body, api_key: key } : body),
    signal,
  });

export const models = async () => (await request("v1/models")).models;

/** Translate a text; with a beginning, it is one sentence, and its translations begin with that. */
export const translate = async ({ text, model, beginning }, signal) => {
  const beginnings = beginning ? { beginnings: [beginning] } : {};
  const answer = await post("v1/translate", { text, model, nbest: ALTERNATIVES, details: true, ...beginnings }, signal);
  return answer.translations[0].sentences;
};

/** Return the words that are most likely to follow the beginning of a sentence's translation. */
export const choices = async ({ text, model, beginning }, signal) =>
  (await post("v1/choices", { text, model, beginning, count: CHOICES }, signal)).choices;
