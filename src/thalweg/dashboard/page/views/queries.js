// The standing queries of a session.

import { h, keyed, setText } from "../dom.js";
import * as format from "../format.js";

const COLUMNS = ["Query", "State", "Rounds", "Rows", "Late", "Moves", "Switches", "Fidelity"];

export const queries = {
  id: "queries",
  title: "Queries",
  about: "Fidelity is the share of rounds whose plan was the best in hindsight.",
  wide: true,
  fits: (run) => run.kind === "session" && (run.values.queries ?? []).length > 0,
  make() {
    const body = h("tbody");
    return {
      element: h(
        "div",
        { class: "scroll tall", tabindex: "0", role: "region", "aria-label": "Queries" },
        h("table", {}, h("thead", {}, h("tr", {}, COLUMNS.map((name, place) => h("th", { scope: "col", class: place > 1 ? "figure" : "" }, name)))), body),
      ),
      update(run) {
        keyed(
          body,
          run.values.queries,
          (_, place) => String(place),
          () => h("tr", {}, h("th", { scope: "row" }, h("div"), h("code", { class: "query-text" })), COLUMNS.slice(1).map((_, place) => h("td", { class: place ? "figure" : "" }))),
          (row, query) => {
            setText(row.querySelector("div"), query.name);
            setText(row.querySelector("code"), query.text.trim());
            const numbers = [query.rounds, query.rows, query.late_rows, query.moves, query.switches].map(format.count);
            [query.status, ...numbers, format.share(query.fidelity)].forEach((text, place) => setText(row.children[place + 1], text));
          },
        );
      },
    };
  },
};
