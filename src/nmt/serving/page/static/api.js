// Requests to the server. Addresses are relative, so that a proxy may serve the page under any path.

import { Problem } from "./problem.js";
import { recall, remember } from "./remembered.js";

const KEY = "nmt-api-key";
const NEEDS_KEY = [401, 403];
const ALTERNATIVES = 3;

const takeKey = (key) => remember("sessionStorage", KEY, key);

/** Return the response with its text, which may break off. */
const send = async (path, options) => {
  try {
    const response = await fetch(path, options);
    return { response, text: await response.text() };
  } catch (error) {
    throw error.name === "AbortError" ? error : new Problem("The server cannot be reached.");
  }
};

const request = async (path, options) => {
  const { response, text } = await send(path, options);
  if (!response.ok) throw problemOf(response, text);
  try {
    return JSON.parse(text);
  } catch { // a proxy in between, which wants a new login for example
    throw new Problem("The answer is not from the server: load the page again.");
  }
};

const problemOf = (response, text) => {
  let message = `The server answered with status ${response.status}.`;
  try {
    message = JSON.parse(text).error ?? message;
  } catch { /* a proxy in between answers with a page of its own */ }
  return new Problem(message, {
    retryAfter: Number(response.headers.get("Retry-After")) || 0,
    takeKey: NEEDS_KEY.includes(response.status) ? takeKey : null,
  });
};

const post = (path, body, signal) => {
  const key = recall("sessionStorage", KEY);
  return request(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(key ? { ...body, api_key: key } : body),
    signal,
  });
};

export const models = async () => (await request("v1/models")).models;

/** Translate a text; with a beginning, it is one sentence, and its translations begin with that. */
export const translate = async ({ text, model, beginning }, signal) => {
  const beginnings = beginning ? { beginnings: [beginning] } : {};
  const answer = await post("v1/translate", { text, model, nbest: ALTERNATIVES, details: true, ...beginnings }, signal);
  return answer.translations[0];
};

/** Return the words that are most likely to follow the beginning of a sentence's translation. */
export const choices = async ({ text, model, beginning }, signal) =>
  (await post("v1/choices", { text, model, beginning, count: 8 }, signal)).choices;
