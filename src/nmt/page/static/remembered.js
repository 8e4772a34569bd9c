// What this browser remembers, in one of its storages; if it forbids them, until the page is left.

const here = new Map();

export const recall = (storage, key) => {
  try {
    return self[storage].getItem(key);
  } catch {
    return here.get(key) ?? null;
  }
};

export const remember = (storage, key, value) => {
  here.set(key, value);
  try {
    self[storage].setItem(key, value);
  } catch { /* it is kept here */ }
};
