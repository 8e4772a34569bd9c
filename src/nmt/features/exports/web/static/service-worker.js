// Keep all files in this browser, and answer from there. A new export is kept as a whole before it takes over.

import { storeName, storesOf } from "./store.js";

const VERSION = "${version}";
const folder = self.registration.scope;
const openStore = () => caches.open(storeName(folder, VERSION));

/** Fetch and keep what is not yet kept; the digests refuse files of another export. */
const keepAll = async () => {
  const store = await openStore();
  const listing = await fetch("files.json", { cache: "no-cache" });
  const { version, files } = await listing.clone().json();
  if (version !== VERSION) throw new Error("the folder is being replaced");
  for (const [name, { sha256 }] of Object.entries(files)) {
    if (await store.match(name)) continue;
    const response = await fetch(name, { integrity: `sha256-${sha256}`, cache: "no-cache" });
    if (!response.ok) throw new Error(`${name} could not be loaded (status ${response.status})`);
    await store.put(name, response);
  }
  await store.put("files.json", listing);
};

const forgetOthers = async () => {
  const names = (await caches.keys()).filter((name) => name.startsWith(storesOf(folder)));
  await Promise.all(names.filter((name) => name !== storeName(folder, VERSION)).map((name) => caches.delete(name)));
};

const answer = async (request) => {
  const { origin, pathname } = new URL(request.url);
  const name = origin + pathname;
  const kept = await (await openStore()).match(name === folder ? `${folder}index.html` : name);
  return kept ?? fetch(request);
};

self.addEventListener("install", (event) => event.waitUntil(keepAll()));
self.addEventListener("activate", (event) => event.waitUntil(forgetOthers()));
self.addEventListener("fetch", (event) => {
  if (event.request.method === "GET" && event.request.url.startsWith(folder)) event.respondWith(answer(event.request));
});
