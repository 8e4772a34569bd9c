// The files of the model: from the store of this browser, or else over the network, once.

import { storeName } from "./store.js";

/** @typedef {{bytes: number, sha256: string}} FileFacts the digest is in base64 */
/** @typedef {{version: string, files: Record<string, FileFacts>}} Listing */

const base64 = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)));

const fetched = async (name) => {
  const response = await fetch(name);
  if (!response.ok) throw new Error(`${name} could not be loaded (status ${response.status})`);
  return response;
};

/** Read a response piece by piece; `received` is called with the number of bytes of each piece. */
const read = async (response, bytes, received) => {
  const content = new Uint8Array(bytes);
  let place = 0;
  const reader = response.body.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    if (place + part.value.length > bytes) throw new Error("a file is longer than it should be");
    content.set(part.value, place);
    place += part.value.length;
    received(part.value.length);
  }
  return content;
};

/** Refuse what is not the file that was exported; browsers compute digests over HTTPS and on this machine only. */
const verify = async (name, content, sha256) => {
  if (crypto.subtle && base64(await crypto.subtle.digest("SHA-256", content)) !== sha256) {
    throw new Error(`${name} is damaged or from another version: load the page again`);
  }
};

/** Return the store of a version; none if the browser has none, or forbids it. */
const opened = async (version) => {
  try {
    return await self.caches?.open(storeName(new URL("./", location.href).href, version));
  } catch {
    return undefined;
  }
};

/** Return the list of all files. */
export const listing = async () => /** @type {Promise<Listing>} */ ((await fetched("files.json")).json());

/**
 * Return a file, and keep it for the next time.
 * @param {string} name
 * @param {Listing} list
 * @param {(bytes: number) => void} received
 */
export const load = async (name, list, received) => {
  const { bytes, sha256 } = list.files[name];
  const store = await opened(list.version);
  const kept = await store?.match(name);
  const content = await read(kept ?? (await fetched(name)), bytes, received);
  await verify(name, content, sha256);
  if (!kept) await store?.put(name, new Response(content)).catch(() => {}); // the store may be full
  return content;
};
