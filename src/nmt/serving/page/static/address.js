// The part of the address after # holds what is shown, so that it can be shared. Browsers do not send it to the server.

const NAMES = ["text", "model", "second"];

export const readAddress = () => {
  const parameters = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(NAMES.map((name) => [name, parameters.get(name) ?? ""]));
};

export const writeAddress = (shown) => {
  const parameters = new URLSearchParams();
  for (const name of NAMES) if (shown[name]) parameters.set(name, shown[name]);
  history.replaceState(null, "", parameters.size ? `#${parameters}` : location.pathname + location.search);
};
