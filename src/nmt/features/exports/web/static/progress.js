// The progress of the first load: a bar, and how much there is to load.

import { element, find } from "./dom.js";

const MEGABYTE = 1e6;
const line = element("p", { className: "loading", hidden: "" });
const label = element("label", { text: "Loading the translator" });
const bar = element("progress");
const amount = element("span");
label.append(bar);
line.append(label, amount);
find("main").before(line);

/** @param {{received: number, bytes: number}} progress */
export const showProgress = ({ received, bytes }) => {
  line.hidden = false;
  bar.max = bytes;
  bar.value = received;
  amount.textContent = `${(received / MEGABYTE).toFixed(1)} of ${(bytes / MEGABYTE).toFixed(1)} MB`;
};

export const hideProgress = () => {
  line.hidden = true;
};
