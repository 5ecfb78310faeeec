"use strict";
// Tables: a click on a head sorts by value, a second one turns round; what is missing stays last. Long tables fold.
const FOLD = 30;

for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down === 1 ? "ascending" : "descending");
      const key = (row) => row.cells[place].dataset.v || null;
      const compare = (a, b) => {
        const x = key(a), y = key(b);
        if (x === null || y === null) return (x === null) - (y === null);
        const numbers = head.classList.contains("n");
        return down * (numbers ? x - y : x.localeCompare(y, undefined, { numeric: true }));
      };
      body.append(...[...body.rows].sort(compare));
    });
  });
  const count = body.rows.length;
  if (count > FOLD) {
    const button = document.createElement("button");
    button.className = "fold";
    const turn = () => {
      const folded = table.classList.toggle("folded");
      button.textContent = folded ? `Show all ${count.toLocaleString("en")} rows` : `Show the first ${FOLD} rows`;
      button.setAttribute("aria-expanded", String(!folded));
    };
    button.addEventListener("click", turn);
    turn();
    table.parentElement.after(button);
  }
}

// Charts: each panel is a Vega-Lite specification, embedded as wide as its box. On dark pages the colours are exchanged
// one for one. The panels of a figure share one legend, the last one's: what is switched there is switched in all.
const CROWDED = 3000;  // with more points than this a canvas is drawn, not SVG

function recoloured(value, colours) {
  if (Array.isArray(value)) return value.map((one) => recoloured(one, colours));
  if (value === null || typeof value !== "object") return colours.get(value) ?? value;
  const parts = Object.entries(value).map(([key, one]) => [key, key === "data" ? one : recoloured(one, colours)]);
  return Object.fromEntries(parts);
}

function wrapped(title, room) {
  const lines = [];
  for (const word of title.split(" ")) {
    const fits = lines.length > 0 && lines.at(-1).length + word.length < room;
    if (fits) lines[lines.length - 1] += ` ${word}`;
    else lines.push(word);
  }
  return lines;
}

// A specification with titles and a legend that fit into so many pixels.
function fitted(spec, width, hasLegend) {
  const columns = width < 480 ? 1 : 2;
  for (const [name, channel] of Object.entries(spec.encoding)) {
    if (typeof channel.axis?.title === "string") {
      channel.axis.title = wrapped(channel.axis.title, Math.max(16, (name === "y" ? spec.height : width - 160) / 6));
    }
    if (!channel.legend) continue;
    const labelLimit = Math.max(100, width / columns - 40);
    channel.legend = hasLegend ? { ...channel.legend, columns, labelLimit } : null;
  }
  return spec;
}

async function draw(figure, look, dark) {
  const boxes = [...figure.querySelectorAll(".chart")], views = [];
  const colours = new Map(dark ? Object.entries(look.colours) : []);
  for (const [place, box] of boxes.entries()) {
    const spec = fitted(JSON.parse(box.dataset.spec), box.clientWidth, place === boxes.length - 1);
    const renderer = (spec.data?.values.length ?? 0) > CROWDED ? "canvas" : "svg";
    const options = { mode: "vega-lite", actions: false, renderer, tooltip: { theme: dark ? "dark" : "light" } };
    const { view } = await vegaEmbed(box, recoloured({ ...spec, config: look.config }, colours), options);
    if (spec.params) views.push(view);
  }
  let shown = "[]";
  for (const view of views) {
    view.addDataListener("on_store", (_, chosen) => {
      const now = JSON.stringify(chosen.map((one) => one.values));
      if (now === shown) return;
      shown = now;
      for (const other of views) {
        if (other !== view) other.data("on_store", chosen.map((one) => ({ ...one }))).runAsync();
      }
    });
  }
}

const look = document.getElementById("look");
if (look) {
  const dark = matchMedia("(prefers-color-scheme: dark)"), narrow = matchMedia("(max-width: 40rem)");
  const known = JSON.parse(look.textContent);
  let turn = Promise.resolve();
  const drawAll = () => {
    for (const figure of document.querySelectorAll("figure")) turn = turn.then(() => draw(figure, known, dark.matches));
    globalThis.drawn = turn;
  };
  for (const media of [dark, narrow]) media.addEventListener("change", drawAll);
  drawAll();
}
