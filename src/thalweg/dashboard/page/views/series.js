// Numbers over time, drawn by uPlot: throughput, evaluations, memory and lag, fidelity.

import { h, setText } from "../dom.js";
import * as format from "../format.js";
import { column, evaluationsPerRow, latest, rates, ratesAsWritten } from "../runs.js";

const HEIGHT = 190;
const CLOCK_HEIGHT = 34; // of the times below a plot
const CLOCK_GAP = 10; // between the plot and the times, so that they keep clear of the zero beside the plot
const CLOCK_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400]; // seconds

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Whether a series has a single value, which is no line.
function isSingle(values) {
  return values.filter((value) => value !== null).length === 1;
}

// A view with a line for each of some series: [label, function of a run, colour, whether it is an estimate].
function seriesView({ id, title, about, fits, lines, show }) {
  return {
    id,
    title,
    about,
    fits,
    make() {
      const canvas = h("div", { class: "plot", role: "img" });
      const legend = h("ul", { class: "legend" });
      const waiting = h("p", { class: "waiting" });
      let plot = null;
      let run = null;

      function options(chosen) {
        const axis = {
          stroke: colour("--muted"),
          grid: { stroke: colour("--line"), width: 1 },
          ticks: { show: false },
          font: "12px system-ui, sans-serif",
        };
        return {
          width: Math.max(canvas.clientWidth, 200),
          height: HEIGHT,
          padding: [null, 32, null, null], // for half of the last time
          legend: { show: false },
          cursor: { show: false },
          scales: { y: { range: (_, low, high) => [Math.min(low ?? 0, 0), (high || 1) * 1.1] } },
          axes: [
            { ...axis, space: 80, size: CLOCK_HEIGHT, gap: CLOCK_GAP, incrs: CLOCK_STEPS, values: (_, values) => values.map(format.clock) },
            { ...axis, size: 64, values: (_, values) => values.map(show) },
          ],
          series: [
            {},
            ...chosen.map(([label, , name, isEstimate]) => ({
              label,
              stroke: colour(name),
              width: 2,
              dash: isEstimate ? [6, 5] : undefined,
              spanGaps: true,
              points: { show: (shown, place) => isSingle(shown.data[place]), size: 8, fill: colour(name) },
            })),
          ],
        };
      }

      function draw() {
        if (!run) return;
        const chosen = lines(run);
        const data = [column(run, "at"), ...chosen.map(([, values]) => values(run))];
        const isKnown = data.slice(1).some((values) => latest(values) !== null);
        waiting.hidden = isKnown;
        setText(waiting, run.state === "running" ? "The line begins with the second report." : "The run was too short for a line.");
        canvas.hidden = legend.hidden = !isKnown;
        if (!isKnown) return;
        if (!plot) plot = new uPlot(options(chosen), data, canvas);
        else plot.setData(data);
        const told = chosen.map(([label], place) => `${label}: ${show(latest(data[place + 1]))}`);
        const summary = `${title}. ${told.join(", ")}.`;
        if (canvas.getAttribute("aria-label") !== summary) canvas.setAttribute("aria-label", summary);
        if (legend.children.length !== chosen.length) {
          legend.replaceChildren(
            ...chosen.map(([, , name, isEstimate]) => {
              const line = h("span", { class: isEstimate ? "swatch dashed" : "swatch", "aria-hidden": "true" });
              line.style.setProperty("--swatch", `var(${name})`);
              return h("li", {}, line, h("span"));
            }),
          );
        }
        told.forEach((text, place) => setText(legend.children[place].lastElementChild, text));
      }

      function drawAnew() {
        plot?.destroy();
        plot = null;
        draw();
      }

      const sizes = new ResizeObserver(() => {
        if (plot && canvas.clientWidth) plot.setSize({ width: canvas.clientWidth, height: HEIGHT });
      });
      sizes.observe(canvas);
      document.addEventListener("theme", drawAnew);
      return {
        element: h("div", {}, canvas, legend, waiting),
        update(next) {
          run = next;
          draw();
        },
        close() {
          sizes.disconnect();
          document.removeEventListener("theme", drawAnew);
          plot?.destroy();
        },
      };
    },
  };
}

export const throughput = seriesView({
  id: "throughput",
  title: "Throughput",
  about: "Rows a second, and an estimate for the order as written, from what it costs for a row.",
  fits: (run) => run.kind === "where",
  lines: () => [
    ["Now", (run) => rates(run, "rows"), "--flow", false],
    ["As written, estimated", ratesAsWritten, "--contrast", true],
  ],
  show: format.count,
});

export const rowsAndResults = seriesView({
  id: "rows-and-results",
  title: "Throughput",
  about: "Rows that come, and results, a second.",
  fits: (run) => run.kind !== "where",
  lines: () => [
    ["Rows", (run) => rates(run, "rows"), "--flow", false],
    ["Results", (run) => rates(run, "results"), "--contrast", false],
  ],
  show: format.count,
});

export const evaluations = seriesView({
  id: "evaluations",
  title: "Evaluations a row",
  about: "How many predicates look at a row in Python before its fate is known.",
  fits: (run) => run.kind === "where" && latest(column(run, "evaluations")) !== null,
  lines: () => [["Evaluations a row", evaluationsPerRow, "--flow", false]],
  show: format.number,
});

export const memory = seriesView({
  id: "memory",
  title: "Memory",
  about: "Bytes of windows and indexes in workers, or of the rounds that are computed together.",
  fits: (run) => run.kind !== "where" && column(run, "memory").some((bytes) => bytes > 0), // plain queries hold none
  lines: () => [["Memory", (run) => column(run, "memory"), "--flow", false]],
  show: format.bytes,
});

export const lag = seriesView({
  id: "lag",
  title: "Lag",
  about: "How far the latest event time lies behind the clock.",
  fits: (run) => run.kind !== "where" && latest(column(run, "lag")) !== null,
  lines: () => [["Lag", (run) => column(run, "lag"), "--flow", false]],
  show: format.seconds,
});

export const fidelity = seriesView({
  id: "fidelity",
  title: "Fidelity",
  about: "The share of rounds whose plan was the best in hindsight, over all queries.",
  fits: (run) => run.kind === "session" && latest(column(run, "fidelity")) !== null,
  lines: () => [["Fidelity", (run) => column(run, "fidelity"), "--flow", false]],
  show: format.share,
});
