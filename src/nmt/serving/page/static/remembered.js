// What this browser remembers, in one of its storages; if it forbids them, until the page is left.

const here = new Map();

export const recall = (storage, key) => {
  try {
    return here.get(key) ?? self[storage].getItem(key);
  } catch {
    return null;
  }
};

export const remember = (storage, key, value) => {
  try {
    self[storage].setItem(key, value);
    here.delete(key);
  } catch {
    here.set(key, value);
  }
};
