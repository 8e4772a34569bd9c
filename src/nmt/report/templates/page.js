"use strict";
// Draw one head of the attention of a sentence as a table: one byte per weight, in the shape (layers, heads, queries, keys).
(() => {
  const { heads, kinds } = JSON.parse(document.getElementById("data").textContent);
  const kind = document.getElementById("kind"), head = document.getElementById("head");
  const cell = (tag, text = "") => Object.assign(document.createElement(tag), { textContent: text });
  const row = (...cells) => { const made = cell("tr"); made.append(...cells); return made; };

  const draw = () => {
    const { queries, keys, weights } = kinds[kind.value];
    const bytes = atob(weights), from = Number(head.value) * queries.length * keys.length;
    const rows = queries.map((query, number) => row(cell("th", query), ...keys.map((key, column) => {
      const weight = bytes.charCodeAt(from + number * keys.length + column) / 255;
      const made = cell("td");
      made.style.setProperty("--weight", weight.toFixed(3));
      made.title = `${query} → ${key}: ${weight.toFixed(2)}`;
      return made;
    })));
    const names = keys.map((key) => { const made = cell("th"); made.append(cell("span", key)); return made; });
    document.getElementById("attention").replaceChildren(row(cell("th"), ...names), ...rows);
  };
  const list = () => {
    const chosen = head.value || "0";
    head.replaceChildren(...Array.from({ length: kinds[kind.value].layers * heads }, (_, number) => {
      const made = cell("option", `layer ${1 + Math.floor(number / heads)}, head ${1 + (number % heads)}`);
      made.value = number;
      return made;
    }));
    head.value = Number(chosen) < head.length ? chosen : "0";
    draw();
  };
  kind.addEventListener("change", list);
  head.addEventListener("change", draw);
  list();
})();
