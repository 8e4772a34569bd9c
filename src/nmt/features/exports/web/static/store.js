// The store of an export in a browser, which may keep several exports of the same site.

const PREFIX = "nmt";

export const storesOf = (folder) => `${PREFIX} ${folder} `;
export const storeName = (folder, version) => `${storesOf(folder)}${version}`;
