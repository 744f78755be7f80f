// The numbers that one looks at first.

import { h, keyed, setText } from "../dom.js";
import * as format from "../format.js";
import { column, evaluationsPerRow, latest, rates, ratesAsWritten } from "../runs.js";

function numbersOf(run) {
  const rate = latest(rates(run, "rows"));
  const found = [
    ["Rows a second", run.state === "running" ? format.count(rate) : "–"],
    ["Rows", format.count(latest(column(run, "rows")))],
    [run.kind === "where" ? "Kept" : "Results", format.count(latest(column(run, "results")))],
  ];
  if (run.kind === "where") {
    const written = latest(ratesAsWritten(run));
    const cost = latest(column(run, "cost"));
    const costAsWritten = latest(column(run, "cost_as_written"));
    found.splice(1, 0, ["As written, estimated", run.state === "running" ? format.count(written) : "–"]);
    found.push(["Evaluations a row", format.number(latest(evaluationsPerRow(run)))]);
    if (cost && costAsWritten) found.push(["Cost as written", `${format.number(costAsWritten / cost)}× now`]);
  }
  if (run.kind === "session") found.push(["Fidelity", format.share(latest(column(run, "fidelity")))]);
  const memory = latest(column(run, "memory"));
  const lag = latest(column(run, "lag"));
  if (memory) found.push(["Memory", format.bytes(memory)]);
  if (lag !== null) found.push(["Lag", format.seconds(lag)]);
  const batch = run.values.progress?.batch_seconds;
  if (batch !== null && batch !== undefined) found.push(["Last micro-batch", format.seconds(batch)]);
  found.push(["Switches", format.count(run.switch_count)]);
  if (run.kind === "where") found.push(["Drifts", format.count(run.drift_count)]);
  return found;
}

const MOST_COLUMNS = 8;

// How many columns make the rows of tiles equally long, as far as that is possible.
function columnsFor(tiles) {
  return Math.ceil(tiles / Math.ceil(tiles / MOST_COLUMNS));
}

export function tiles() {
  const element = h("dl", { class: "tiles" });
  return {
    element,
    update(run) {
      const numbers = numbersOf(run);
      element.style.setProperty("--columns", columnsFor(numbers.length));
      keyed(
        element,
        numbers,
        ([name]) => name,
        ([name]) => h("div", { class: "tile" }, h("dt", {}, name), h("dd")),
        (tile, [, value]) => setText(tile.lastElementChild, value),
      );
    },
  };
}
