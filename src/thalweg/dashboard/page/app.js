// The page: follows the server, lists the runs, and shows one of them, with a card for each view that fits.

import { h, keyed, setText } from "./dom.js";
import { ago, clock } from "./format.js";
import { Runs } from "./runs.js";
import { cells } from "./views/cells.js";
import { chart } from "./views/chart.js";
import { classes } from "./views/classes.js";
import { graph } from "./views/graph.js";
import { ladder } from "./views/ladder.js";
import { matrix } from "./views/matrix.js";
import { notes } from "./views/notes.js";
import { queries } from "./views/queries.js";
import { evaluations, fidelity, lag, memory, rowsAndResults, throughput } from "./views/series.js";
import { switches } from "./views/switches.js";
import { tiles } from "./views/tiles.js";
import { timeline } from "./views/timeline.js";

const VIEWS = [
  throughput, rowsAndResults, ladder, memory, lag, fidelity, cells, evaluations, matrix, graph, queries, chart, timeline,
  switches, classes, notes,
];
const THEMES = ["system", "light", "dark"];
const SILENT_SECONDS = 15; // without a word of the server, after which the page says so
const STATES = { running: "running", stale: "stale", ended: "ended", failed: "failed" };

const runs = new Runs();
const main = document.getElementById("main");
const list = document.getElementById("runs");
const banner = document.getElementById("banner");
let chosen = decodeURIComponent(location.hash.slice(1)) || null;
let shown = null; // the run that is on the page, and its views
let heard = Date.now();
let hasSnapshot = false;
let isDrawing = false;

// ------------------------------------------------------------------------------------------- the server

function follow() {
  const source = new EventSource("/api/events");
  const on = (name, take) =>
    source.addEventListener(name, (event) => {
      heard = Date.now();
      take(JSON.parse(event.data));
      draw();
    });
  on("snapshot", (content) => {
    hasSnapshot = true;
    runs.snapshot(content);
  });
  on("update", (content) => runs.update(content));
  on("alive", ({ now }) => (runs.skew = now - Date.now() / 1000));
  source.addEventListener("error", () => {
    draw();
    if (source.readyState === EventSource.CLOSED) setTimeout(follow, 3000);
  });
  setInterval(draw, 1000);
}

function draw() {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(() => {
    isDrawing = false;
    drawConnection();
    if (!hasSnapshot) return;
    drawList();
    drawRun();
  });
}

function drawConnection() {
  const isLost = Date.now() - heard > 1000 * SILENT_SECONDS;
  const connection = document.getElementById("connection");
  connection.dataset.state = isLost ? "lost" : hasSnapshot ? "live" : "connecting";
  setText(document.getElementById("connection-text"), isLost ? "No connection" : hasSnapshot ? "Live" : "Connecting");
  banner.hidden = !isLost;
  if (isLost) {
    setText(
      banner,
      `The server has been silent since ${clock(heard / 1000)}. This page shows the state of that time, and tries again by itself.`,
    );
  }
}

// ------------------------------------------------------------------------------------------- the list of runs

function drawList() {
  const listed = runs.listed;
  if (!runs.byToken.has(chosen)) chosen = listed[0]?.run ?? null;
  keyed(
    list,
    listed,
    (run) => run.run,
    (run) =>
      h(
        "li",
        {},
        h(
          "button",
          { type: "button", class: "run", onclick: () => choose(run.run) },
          h("span", { class: "run-title" }),
          h("span", { class: "run-about" }, h("span", { class: "state" }), h("span", { class: "run-program" })),
        ),
      ),
    (item, run) => {
      const button = item.firstElementChild;
      if (run.run === chosen && !button.hasAttribute("aria-current")) {
        button.setAttribute("aria-current", "true");
        requestAnimationFrame(() => button.scrollIntoView({ block: "nearest", inline: "nearest" }));
      }
      if (run.run !== chosen) button.removeAttribute("aria-current");
      setText(item.querySelector(".run-title"), run.title);
      const state = item.querySelector(".state");
      state.dataset.state = run.state;
      setText(state, STATES[run.state]);
      setText(item.querySelector(".run-program"), `${run.about.program} · ${run.about.process}`);
    },
  );
  document.getElementById("keys").hidden = listed.length < 2;
}

function choose(token) {
  chosen = token;
  history.replaceState(null, "", `#${encodeURIComponent(token)}`);
  draw();
}

function step(by) {
  const listed = runs.listed;
  const place = listed.findIndex((run) => run.run === chosen);
  const next = listed[Math.min(Math.max(place + by, 0), listed.length - 1)];
  if (!next) return;
  choose(next.run);
  requestAnimationFrame(() => requestAnimationFrame(() => list.querySelector("[aria-current]")?.focus()));
}

// ------------------------------------------------------------------------------------------- the run

function drawRun() {
  const run = runs.byToken.get(chosen);
  if (!run) {
    closeViews();
    if (shown || !main.firstChild) main.replaceChildren(empty());
    shown = null;
    return;
  }
  if (shown?.token !== run.run) {
    closeViews();
    shown = { token: run.run, head: head(), cards: h("div", { class: "cards" }), views: new Map() };
    main.replaceChildren(shown.head.element, shown.cards);
    main.scrollTop = 0;
  }
  shown.head.update(run);
  const fitting = VIEWS.filter((view) => view.fits(run));
  keyed(
    shown.cards,
    fitting,
    (view) => view.id,
    (view) => {
      const made = view.make();
      shown.views.set(view.id, made);
      return h(
        "section",
        { class: `card ${view.wide ? "wide" : ""}`, "aria-labelledby": `title-${view.id}`, id: `card-${view.id}` },
        h("h2", { id: `title-${view.id}` }, view.title),
        h("p", { class: "about" }, view.about),
        made.element,
      );
    },
  );
  for (const view of fitting) shown.views.get(view.id).update(run, runs.now);
}

function closeViews() {
  for (const view of shown?.views.values() ?? []) view.close?.();
}

function head() {
  const title = h("h1");
  const state = h("span", { class: "state" });
  const about = h("span", { class: "run-facts" });
  const stale = h("p", { class: "stale", role: "status", tabindex: "0", hidden: true }); // a long error can be scrolled
  const numbers = tiles();
  return {
    element: h("div", { class: "head" }, h("div", { class: "head-line" }, title, state), about, stale, numbers.element),
    update(run) {
      setText(title, run.title);
      state.dataset.state = run.state;
      setText(state, STATES[run.state]);
      setText(about, `${run.about.program}, process ${run.about.process}; began at ${clock(run.began_at)}`);
      stale.hidden = run.state === "running" || run.state === "ended";
      if (run.state === "stale") {
        setText(
          stale,
          `Stale: the program was last heard of ${ago(run.heard_at, runs.now)}. It may have been killed, or be stopped.`,
        );
      }
      if (run.state === "failed") setText(stale, `The query has failed: ${run.error}`);
      numbers.update(run);
    },
  };
}

function empty() {
  return h(
    "div",
    { class: "empty" },
    h("h1", {}, "No runs yet"),
    h("p", {}, "Add one line to a program, before or after its queries start:"),
    h("pre", { tabindex: "0" }, h("code", {}, "import thalweg as tw\n\ntw.dashboard()")),
    h(
      "p",
      {},
      "Its ", h("code", {}, "tw.where"), ", ", h("code", {}, "tw.stream"), ", ", h("code", {}, "tw.join"), " and ",
      h("code", {}, "tw.Session"), " then appear here as soon as they begin, and stay for a week after they end.",
    ),
  );
}

// ------------------------------------------------------------------------------------------- theme and keys

function readTheme() {
  try {
    return localStorage.getItem("thalweg-theme") ?? "system";
  } catch {
    return "system";
  }
}

const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

function setTheme(theme) {
  const system = systemIsDark.matches ? "dark" : "light";
  document.documentElement.dataset.theme = theme === "system" ? system : theme;
  setText(document.getElementById("theme"), `Theme: ${theme}`);
  try {
    localStorage.setItem("thalweg-theme", theme);
  } catch {
    // a browser that keeps nothing asks the system each time
  }
  document.dispatchEvent(new Event("theme"));
}

function nextTheme() {
  setTheme(THEMES[(THEMES.indexOf(readTheme()) + 1) % THEMES.length]);
}

document.getElementById("theme").addEventListener("click", nextTheme);
systemIsDark.addEventListener("change", () => setTheme(readTheme()));
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
  else if (event.key === "t") nextTheme();
});
addEventListener("hashchange", () => choose(decodeURIComponent(location.hash.slice(1))));

setTheme(readTheme());
follow();
