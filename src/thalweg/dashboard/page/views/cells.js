// How full the cells of a join are, and the keys that are split.

import { h, keyed, setText } from "../dom.js";
import * as format from "../format.js";

export const cells = {
  id: "cells",
  title: "Cells and split keys",
  about: "The rows that each cell holds. Values that many rows have are split over several cells.",
  fits: (run) => run.kind === "join" && Boolean(run.values.cells),
  make() {
    const bars = h("div", { class: "bars", role: "img" });
    const facts = h("ul", { class: "facts" });
    return {
      element: h("div", { class: "cells" }, bars, facts),
      update(run) {
        const rows = run.values.cell_rows ?? [];
        const most = Math.max(...rows, 1);
        bars.setAttribute("aria-label", `${rows.length} cells, the fullest with ${format.count(rows.length ? most : 0)} rows`);
        keyed(bars, rows, (_, place) => String(place), () => h("span"), (bar, count, place) => {
          bar.style.height = `${Math.max((100 * count) / most, 2)}%`;
          bar.title = `cell ${place}: ${format.count(count)} rows`;
        });
        const told = factsOf(run.values);
        keyed(facts, told, (_, place) => String(place), () => h("li"), (item, text) => setText(item, text));
      },
    };
  },
};

function factsOf(values) {
  const split = values.split;
  const heavy = split?.heavy ?? [];
  return [
    `${values.cells} cells; each row is sent ${values.replication === 1 ? "once" : `${format.number(values.replication)} times`}`,
    `state: ${format.bytes(values.state_bytes)} in ${format.count(values.state_segments)} segments`,
    ...(values.heaviest ? [`the fullest cell holds ${format.number(values.heaviest)} times the mean`] : []),
    ...(split ? [] : ["no value can be split"]),
    ...(split && !heavy.length ? ["no value is split"] : []),
    ...heavy.map((value) => `a value of ${value.columns.join(" = ")} that ${format.share(value.share)} of the rows have is split: ${value.spread} is spread`),
  ];
}
