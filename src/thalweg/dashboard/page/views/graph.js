// The join graph: streams, selectivities on the edges, and the order in which each stream probes the others.

import { h, orderLine, s } from "../dom.js";
import * as format from "../format.js";

const WIDTH = 460;
const HEIGHT = 300;
const LONGEST = 14; // letters of a name in the picture

function short(name) {
  return name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name;
}

// On a circle, the first stream at the top; two streams side by side.
function placesOf(names) {
  const turn = names.length === 2 ? Math.PI : -Math.PI / 2;
  return new Map(
    names.map((name, place) => {
      const angle = turn + (2 * Math.PI * place) / names.length;
      return [name, [WIDTH / 2 + 165 * Math.cos(angle), HEIGHT / 2 + 108 * Math.sin(angle)]];
    }),
  );
}

export const graph = {
  id: "graph",
  title: "Join graph",
  about: "On each edge the share of pairs of rows that match; in the table the order in which new rows of an input probe the others.",
  wide: true,
  fits: (run) => run.kind === "join" && Boolean(run.values.inputs),
  make() {
    const element = h("div", { class: "graph" });
    let drawn = null;
    return {
      element,
      update(run) {
        const { inputs, edges, orders } = run.values;
        const wanted = JSON.stringify([edges, orders, inputs]);
        if (drawn === wanted) return;
        drawn = wanted;
        element.replaceChildren(picture(inputs, edges ?? [], run.values.shape), probes(inputs, orders ?? {}));
      },
    };
  },
};

function picture(inputs, edges, shape) {
  const names = Object.keys(inputs);
  const places = placesOf(names);
  const label = `A ${shape} join of ${names.length} inputs. ${edges.map((edge) => `${edge.left} and ${edge.right}: ${format.number(edge.selectivity)}`).join("; ")}`;
  return s(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label, class: "picture" },
    edges.map((edge) => {
      const [[x1, y1], [x2, y2]] = [places.get(edge.left), places.get(edge.right)];
      return s("line", { x1, y1, x2, y2, class: "edge" });
    }),
    edges.flatMap((edge) => {
      const [[x1, y1], [x2, y2]] = [places.get(edge.left), places.get(edge.right)];
      const [x, y] = [0.58 * x1 + 0.42 * x2, 0.58 * y1 + 0.42 * y2]; // off the middle, where edges cross
      const text = format.number(edge.selectivity);
      const width = 18 + 7 * text.length;
      return [
        s("rect", { x: x - width / 2, y: y - 11, width, height: 22, rx: 11, class: "edge-label" }),
        s("text", { x, y: y + 4, class: "edge-text" }, text),
      ];
    }),
    names.flatMap((name) => {
      const [x, y] = places.get(name);
      return [
        s("rect", { x: x - 58, y: y - 22, width: 116, height: 44, rx: 10, class: "node" }),
        s("text", { x, y: y - 2, class: "node-name" }, short(name)),
        s("text", { x, y: y + 14, class: "node-rate" }, `${format.count(inputs[name].rows)} rows`),
      ];
    }),
  );
}

function probes(inputs, orders) {
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Inputs and probe orders" },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, ["Input", "Probes", "Rows", "Late", "In state"].map((name, place) => h("th", { scope: "col", class: place > 1 ? "figure" : "" }, name)))),
      h(
        "tbody",
        {},
        Object.entries(inputs).map(([name, input]) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, name),
            h(
              "td",
              {},
              (orders[name] ?? []).length
                ? orders[name].map((each) => h("div", {}, orderLine(each.order), h("small", {}, `in ${each.cells} cell${each.cells === 1 ? "" : "s"}`)))
                : "–",
            ),
            h("td", { class: "figure" }, format.count(input.rows)),
            h("td", { class: "figure" }, format.count(input.late)),
            h("td", { class: "figure" }, format.count(input.rows_in_state)),
          ),
        ),
      ),
    ),
  );
}
