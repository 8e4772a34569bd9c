// What the page asks is answered in this browser, by a worker. Once its files are kept here, no server is needed.

import { Problem } from "./problem.js";
import { hideProgress, showProgress } from "./progress.js";

let worker = null;
let loaded = null;
let last = 0;
const waiting = new Map();

const stop = (message) => {
  worker?.terminate();
  worker = null;
  loaded = null;
  hideProgress();
  for (const { reject } of waiting.values()) reject(new Problem(message));
  waiting.clear();
};

const receive = ({ data }) => {
  if (data.progress) return showProgress(data.progress);
  const { resolve, reject } = waiting.get(data.id) ?? {};
  waiting.delete(data.id);
  if (data.error) reject?.(new Problem(data.error));
  else resolve?.(data.result);
};

const start = () => {
  worker = new Worker("worker.js", { type: "module" });
  worker.addEventListener("message", receive);
  worker.addEventListener("error", () => stop("The translator could not be started; the page needs a browser of 2023 or later."));
};

/** Ask the worker; if the signal aborts, it is told that nobody waits for the answer. */
const ask = (kind, request, signal) => new Promise((resolve, reject) => {
  if (!worker) start();
  last += 1;
  const id = last;
  waiting.set(id, { resolve, reject });
  worker.postMessage({ id, kind, request });
  signal?.addEventListener("abort", () => {
    if (!waiting.delete(id)) return;
    worker?.postMessage({ id, kind: "cancel" });
    reject(signal.reason);
  });
});

/** Keep all files in this browser, so that the page works offline. Browsers allow it over HTTPS and on this machine. */
const keep = async () => {
  if (!navigator.serviceWorker) return;
  await navigator.serviceWorker.register("service-worker.js", { type: "module" });
  await navigator.serviceWorker.ready;
  document.documentElement.dataset.offline = "ready";
};

const load = async () => {
  const { name, languages: [source, target] } = await ask("load");
  hideProgress();
  keep().catch(() => {}); // without space for the files, the page still works online
  return [{ name, source, target, default: true, engine: "onnxruntime", attention: true, choices: true }];
};

export const models = () => {
  loaded ??= load().catch((error) => {
    stop("");
    throw error;
  });
  return loaded;
};

/** Translate a text; with a beginning, it is one sentence, and its translations begin with that. */
export const translate = ({ text, beginning }, signal) => ask("translate", { text, beginning }, signal);

/** Return the words that are most likely to follow the beginning of a sentence's translation. */
export const choices = ({ text, beginning }, signal) => ask("choices", { text, beginning }, signal);
