// Classes of rows, and the order of each.

import { h, orderLine } from "../dom.js";
import * as format from "../format.js";

const MOST = 12; // classes that are listed

export const classes = {
  id: "classes",
  title: "Classes",
  about: "Rows that differ in a column may have an order of their own, where it surely saves.",
  wide: true,
  fits: (run) => run.kind === "where" && Boolean(run.values.routing),
  make() {
    const element = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Classes" });
    let drawn = null;
    return {
      element,
      update(run) {
        const routing = run.values.routing;
        if (drawn === routing) return;
        drawn = routing;
        const stages = routing.stages ?? [];
        element.replaceChildren(
          ...(routing.off ? [h("p", {}, `None; ${routing.off}`)] : []),
          ...(stages.length || routing.off ? [] : [h("p", {}, `None yet, by ${(routing.considered ?? []).join(", ") || "no column"}`)]),
          ...stages.flatMap(stage),
        );
      },
    };
  },
};

function stage(told) {
  if (!told.classifier) return [h("p", {}, `None in ${told.runs_in}: one order is best as far as ${format.count(told.profile_tuples)} rows tell.`)];
  const saves = told.benefit ? `; saves ${format.share(told.benefit.saving)} ± ${format.share(told.benefit.error)} of the cost of one order` : "";
  return [
    h("p", {}, `By ${told.classifier.attributes.join(" and ")}, in ${told.runs_in}${saves}`),
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Class"), h("th", { scope: "col" }, "Order"))),
      h(
        "tbody",
        {},
        told.classes.slice(0, MOST).map((each) =>
          h("tr", {}, h("th", { scope: "row" }, each.class ? each.values.join("; ") || `${each.cells} values` : "all others"), h("td", {}, orderLine(each.order))),
        ),
      ),
    ),
    ...(told.classes.length > MOST ? [h("p", { class: "hint" }, `and ${told.classes.length - MOST} more`)] : []),
  ];
}
