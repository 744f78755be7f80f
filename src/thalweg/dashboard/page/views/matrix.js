// The matrix view as a heat map: what each predicate drops of the profile tuples that those before it keep.

import { h } from "../dom.js";
import * as format from "../format.js";

export const matrix = {
  id: "matrix",
  title: "Matrix view",
  about: "Each row: of the sampled rows that the predicates above keep, the share that each predicate drops.",
  fits: (run) => run.kind === "where" && (run.values.costs ?? []).some((cost) => cost.matrix?.length > 1),
  make() {
    const element = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Matrix view" });
    let drawn = null;
    return {
      element,
      update(run) {
        const stages = run.values.costs.filter((cost) => cost.matrix?.length > 1);
        if (drawn === run.values.costs) return;
        drawn = run.values.costs;
        element.replaceChildren(...stages.map(table));
      },
    };
  },
};

function table(stage) {
  let alive = stage.profile_tuples;
  const rows = stage.matrix.map((counts, row) => {
    const cells = counts.map((count, place) => {
      if (place < row) return h("td", { class: "none" });
      const part = alive ? count / alive : 0;
      const cell = h("td", { class: "heat", title: `${count} of ${alive}` }, format.share(Math.round(1000 * part) / 1000));
      cell.style.setProperty("--heat", `${Math.round(55 * part)}%`);
      return cell;
    });
    alive -= counts[row];
    return h("tr", {}, h("th", { scope: "row" }, row ? `after ${stage.order[row - 1]}` : "all rows"), cells);
  });
  return h(
    "table",
    { class: "matrix" },
    h("caption", {}, `${format.count(stage.profile_tuples)} profile tuples`),
    h("thead", {}, h("tr", {}, h("td"), stage.order.map((name) => h("th", { scope: "col" }, h("span", { class: "clip", title: name }, name))))),
    h("tbody", {}, rows),
  );
}
