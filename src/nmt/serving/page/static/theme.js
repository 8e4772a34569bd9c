// Light or dark: as the system says, until the user chooses. The choice is remembered in this browser.

import { find } from "./dom.js";
import { recall, remember } from "./remembered.js";

const CHOICE = "nmt-theme";
const root = document.documentElement;

const isDark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

const setTheme = (theme) => {
  root.dataset.theme = theme;
  find("#theme").setAttribute("aria-pressed", theme === "dark");
};

export const startTheme = () => {
  const chosen = recall("localStorage", CHOICE);
  if (chosen) setTheme(chosen);
  find("#theme").addEventListener("click", () => {
    setTheme(isDark() ? "light" : "dark");
    remember("localStorage", CHOICE, root.dataset.theme);
  });
};
