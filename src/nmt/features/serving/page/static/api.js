// Requests to the server. Addresses are relative, so that a proxy may serve the page under any path.

const KEY = "nmt-api-key";
export const ALTERNATIVES = 3;

/** An answer that is not a result: its one line for the user, its status, and when to try again. */
export class ServerError extends Error {
  constructor(message, status, retryAfter = 0) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }

  get needsKey() {
    return this.status === 401 || this.status === 403;
  }
}

export const setKey = (key) => sessionStorage.setItem(KEY, key);

const send = async (path, options) => {
  try {
    return await fetch(path, options);
  } catch (error) {
    throw error.name === "AbortError" ? error : new ServerError("The server cannot be reached.", 0);
  }
};

const request = async (path, options) => {
  const response = await send(path, options);
  const text = await response.text();
  if (!response.ok) throw errorOf(response, text);
  return JSON.parse(text);
};

const errorOf = (response, text) => {
  let message = `The server answered with status ${response.status}.`;
  try {
    message = JSON.parse(text).error ?? message;
  } catch { /* a proxy in between answers with a page of its own */ }
  return new ServerError(message, response.status, Number(response.headers.get("Retry-After")) || 0);
};

const post = (path, body, signal) => {
  const key = sessionStorage.getItem(KEY);
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
