"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (selector, within = document) => within.querySelector(selector);
  const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];

  // Follow the system's colour scheme until the reader chooses light or dark.
  const root = document.documentElement;
  $("#theme").addEventListener("click", () => {
    const current = root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    root.dataset.theme = current === "dark" ? "light" : "dark";
  });

  // Charts name the style sheet's variables, so that their colours change with the colour scheme and in print.
  const font = "system-ui, sans-serif";
  const quiet = "var(--quiet)", line = "var(--line)";
  const config = {
    background: "transparent", font, view: { stroke: null },
    axis: { labelColor: quiet, titleColor: quiet, titleFontWeight: "normal", gridColor: line, domainColor: line, tickColor: line, labelFontSize: 11, titleFontSize: 11, tickCount: 5, labelOverlap: true },
    axisX: { grid: false }, axisY: { domain: false, ticks: false },
    legend: { labelColor: quiet, labelFontSize: 11, padding: 0, offset: 6 },
  };
  const options = { actions: false, renderer: "svg", tooltip: { theme: "custom" }, config };
  const draw = (container, spec) => vegaEmbed(container, spec, options);
  for (const container of $$("[data-chart]")) draw(container, { width: "container", autosize: { type: "fit-x", contains: "padding" }, ...data.charts[container.dataset.chart] });

  const element = (tag, text, className) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };

  // Return text in which every match of the query is marked. Lower case may have other lengths, as that of İ.
  const marked = (text, query) => {
    const made = document.createDocumentFragment();
    let from = 0;
    for (const { 0: match, index } of query ? text.matchAll(new RegExp(escaped(query), "giu")) : []) {
      made.append(text.slice(from, index), element("mark", match));
      from = index + match.length;
    }
    made.append(text.slice(from));
    return made;
  };
  const escaped = (text) => text.replace(/[$()*+.?[\\\]^{|}/]/g, "\\$&");

  const paragraph = (text, query) => {
    const made = element("p");
    made.dir = "auto";
    made.append(marked(text, query));
    return made;
  };

  // Return a line as a paragraph; every second segment is not shared with the other line and gets the tag.
  const compared = (segments, tag, query) => {
    const made = element("p");
    made.dir = "auto";
    segments.forEach((segment, index) => {
      const parent = index % 2 ? made.appendChild(element(tag)) : made;
      parent.append(marked(segment, query));
    });
    return made;
  };

  // Lists of sentences. In a comparison the columns after the source are: first and second translation, gain in chrF,
  // chrF of the second translation, reference.
  const SENTENCES_SHOWN = 10;
  for (const block of $$(".sentences")) {
    const all = data.sentences[block.dataset.split].map(([number, source, hypothesis, reference, chrf, bleu, other = ""]) => ({
      number, source, hypothesis, reference, chrf, bleu, other,
      text: [source, hypothesis.join(""), reference.join(""), other].join("\n").toLowerCase(),
    }));
    const byScore = [...all].sort((a, b) => a.chrf - b.chrf || a.number - b.number);
    const middle = byScore.length ? byScore[byScore.length >> 1].chrf : 0;
    const orders = {
      worst: byScore, best: [...byScore].reverse(), text: all, both: all,
      middle: [...byScore].sort((a, b) => Math.abs(a.chrf - middle) - Math.abs(b.chrf - middle)),
    };
    const state = { order: $("[data-order]", block).dataset.order, query: "", shown: SENTENCES_SHOWN };
    const { first, second } = block.dataset; // the names of the runs in a comparison
    const row = (each) => {
      const made = element("li");
      const add = (label, content, className) => {
        made.append(element("span", label, "of"), content);
        if (className) content.className = className;
      };
      add(`line ${each.number}`, paragraph(each.source, state.query), "source");
      if (second) {
        add(`${first} ${(each.bleu - each.chrf).toFixed(1)}`, compared(each.hypothesis, "del", state.query));
        add(`${second} ${each.bleu.toFixed(1)}`, compared(each.reference, "ins", state.query));
        add("reference", paragraph(each.other, state.query));
      } else {
        add(`chrF ${each.chrf.toFixed(1)}`, compared(each.hypothesis, "del", state.query));
        add("reference", compared(each.reference, "ins", state.query));
      }
      return made;
    };
    const show = () => {
      const found = orders[state.order].filter((each) => each.text.includes(state.query));
      $(".list", block).replaceChildren(...found.slice(0, state.shown).map(row));
      $(".count", block).textContent = state.query ? `${found.length.toLocaleString("en")} of ${all.length.toLocaleString("en")}` : `${all.length.toLocaleString("en")} sentences`;
      $(".more", block).hidden = found.length <= state.shown;
      for (const button of $$("[data-order]", block)) button.setAttribute("aria-pressed", button.dataset.order === state.order);
    };
    const change = (changes) => { Object.assign(state, { shown: SENTENCES_SHOWN }, changes); show(); };
    for (const button of $$("[data-order]", block)) button.addEventListener("click", () => change({ order: button.dataset.order }));
    $("input", block).addEventListener("input", (event) => change({ query: event.target.value.trim().toLowerCase() }));
    $(".more", block).addEventListener("click", () => change({ shown: state.shown + 2 * SENTENCES_SHOWN }));
    show();
  }

  // The switch that hides settings with the value of the base experiment.
  const only = $("#only-different");
  if (only) {
    const show = () => $("#settings").classList.toggle("only", only.checked);
    only.addEventListener("change", show);
    show();
  }

  // Attention weights: one byte per weight, in the shape (layers, heads, queries, keys).
  const looking = $("#looking");
  if (looking) {
    const plain = (piece) => piece.replaceAll("▁", "·");
    const pieceLists = { encoder: ["source", "source"], decoder: ["target", "target"], cross: ["target", "source"] };
    const state = { sentence: 0, kind: "cross", head: 0, query: 0 };
    const weights = new Map();
    const bytes = (sentence, kind) => {
      const name = `${sentence} ${kind}`;
      if (!weights.has(name)) weights.set(name, Uint8Array.from(atob(data.attention[sentence][kind]), (c) => c.charCodeAt(0)));
      return weights.get(name);
    };
    const matrix = () => {
      const sentence = data.attention[state.sentence];
      const [queries, keys] = pieceLists[state.kind].map((list) => sentence[list]);
      const size = queries.length * keys.length;
      const head = bytes(state.sentence, state.kind).subarray(state.head * size, (state.head + 1) * size);
      return { queries, keys, at: (query, key) => head[query * keys.length + key] / 255 };
    };
    const highlight = (query) => {
      const { keys, at } = matrix();
      state.query = query;
      $$("#look-queries span").forEach((span, index) => span.classList.toggle("looking", index === query));
      $$("#look-keys span").forEach((span, index) => {
        span.style.setProperty("--weight", at(query, index).toFixed(3));
        span.title = `${plain(keys[index])}: ${at(query, index).toFixed(2)}`;
      });
    };
    const heatmap = ({ queries, keys, at }) => {
      const values = queries.flatMap((_, query) => keys.map((_, key) => ({ query, key, from: plain(queries[query]), to: plain(keys[key]), weight: at(query, key) })));
      const names = (pieces) => `${JSON.stringify(pieces.map(plain))}[datum.value]`;
      const axis = (pieces, rest) => ({ labelExpr: names(pieces), title: null, domain: false, ticks: false, grid: false, labelOverlap: false, labelFontSize: 12, ...rest });
      return {
        width: { step: 24 }, height: { step: 24 }, data: { values },
        mark: { type: "rect", fill: "var(--accent)", stroke: "var(--line)", strokeWidth: 0.5 },
        encoding: {
          x: { field: "key", type: "ordinal", axis: axis(keys, { labelAngle: -60, orient: "top" }) },
          y: { field: "query", type: "ordinal", axis: axis(queries) },
          fillOpacity: { field: "weight", type: "quantitative", scale: { domain: [0, 1], range: [0, 1] }, legend: null },
          tooltip: [{ field: "from", title: "piece" }, { field: "to", title: "attends to" }, { field: "weight", format: ".2f" }],
        },
      };
    };
    const span = (piece, index) => {
      const made = element("span", plain(piece));
      made.dataset.index = index;
      return made;
    };
    const showHead = (number) => {
      const { layers: { [state.kind]: layers }, heads } = data.attention[state.sentence];
      state.head = (number + layers * heads) % (layers * heads);
      $("#look-where").textContent = `layer ${1 + Math.floor(state.head / heads)}/${layers}, head ${1 + (state.head % heads)}/${heads}`;
      highlight(state.query);
      return draw("#look-picture", heatmap(matrix()));
    };
    const show = () => {
      const [queries, keys] = pieceLists[state.kind].map((list) => data.attention[state.sentence][list]);
      $("#look-queries").replaceChildren(...queries.map(span));
      for (const query of $$("#look-queries span")) query.tabIndex = 0;
      $("#look-keys").replaceChildren(...keys.map(span));
      for (const button of $$("[data-part]", looking)) button.setAttribute("aria-pressed", button.dataset.part === state.kind);
      state.query = Math.min(1, queries.length - 1);
      return showHead(state.head);
    };
    const step = (by) => showHead(state.head + by);
    $("#look-sentence").append(...data.attention.map(({ source }, index) => {
      const option = element("option", source.slice(0, -1).join("").replaceAll("▁", " ").trim());
      option.value = index;
      return option;
    }));
    $("#look-sentence").addEventListener("change", (event) => { state.sentence = Number(event.target.value); show(); });
    for (const button of $$("[data-part]", looking)) button.addEventListener("click", () => { state.kind = button.dataset.part; show(); });
    $("#look-back").addEventListener("click", () => step(-1));
    $("#look-on").addEventListener("click", () => step(1));
    looking.addEventListener("keydown", (event) => {
      if (event.target.matches("select, input")) return;
      if (event.key === "ArrowLeft") step(-1);
      if (event.key === "ArrowRight") step(1);
    });
    const queries = $("#look-queries");
    for (const kind of ["pointerover", "click", "focusin"]) {
      queries.addEventListener(kind, (event) => { if (event.target.dataset.index) highlight(Number(event.target.dataset.index)); });
    }
    show();
  }

  // Print the environment too.
  addEventListener("beforeprint", () => $$("details").forEach((each) => { each.open = true; }));
})();
