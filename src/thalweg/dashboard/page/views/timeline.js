// Drift and switches on a time line; a mark, chosen by pointer or keyboard, says what was before and after.

import { h, keyed, orderLine, setText } from "../dom.js";
import * as format from "../format.js";

const MOST = 80; // marks that are drawn

export const timeline = {
  id: "timeline",
  title: "Time line",
  about: "Changes in the data, and what followed. Choose a mark to see before and after.",
  wide: true,
  fits: (run) => run.switches.length + run.drifts.length > 0,
  make() {
    const track = h("ul", { class: "track" });
    const from = h("span");
    const to = h("span");
    const detail = h("div", { class: "detail", "aria-live": "polite" });
    let chosen = null;
    let drawn = "";

    function show(mark) {
      chosen = mark.key;
      drawn = "";
      for (const item of track.children) item.firstElementChild.setAttribute("aria-pressed", item.dataset.key === chosen);
      detail.replaceChildren(...describe(mark));
    }

    return {
      element: h("div", { class: "timeline" }, track, h("div", { class: "ends" }, from, to), detail),
      update(run) {
        const marks = [
          ...run.drifts.map((drift) => ({ key: `drift ${drift.id}`, isDrift: true, at: drift.at, told: drift })),
          ...run.switches.map((change) => ({ key: `switch ${change.id}`, isDrift: false, at: change.at, told: change })),
        ]
          .sort((one, other) => one.at - other.at)
          .slice(-MOST);
        const begin = Math.min(run.began_at, ...marks.map((mark) => mark.at));
        const end = Math.max(run.heard_at, begin + 1);
        setText(from, format.clock(begin));
        setText(to, format.clock(end));
        keyed(
          track,
          marks,
          (mark) => mark.key,
          (mark) =>
            h(
              "li",
              {},
              h("button", {
                type: "button",
                class: mark.isDrift ? "mark drift" : "mark switch",
                "aria-pressed": "false",
                "aria-label": `${mark.isDrift ? "Drift" : "Switch"} at ${format.clock(mark.at)}`,
                onclick: () => show(mark),
              }),
            ),
          (item, mark) => (item.style.left = `${(100 * (mark.at - begin)) / (end - begin)}%`),
        );
        const last = marks.at(-1);
        if (chosen === null && drawn !== last.key) {
          drawn = last.key;
          detail.replaceChildren(...describe(last));
        }
      },
    };
  },
};

function describe({ isDrift, at, told }) {
  if (!isDrift) {
    return [h("p", {}, h("strong", {}, `Switch at ${format.clock(at)}: `), `${told.what}, because ${told.why ?? "–"}`), ...beforeAfter(told.before, told.after)];
  }
  const what = told.predicate
    ? `${told.kind} of ${told.predicate} from ${format.number(told.before)} to ${format.number(told.after)}`
    : "in the drop rates or times of predicates";
  return [
    h("p", {}, h("strong", {}, `Drift at ${format.clock(at)}: `), `${what}; ${format.count(told.dropped)} profile tuples thrown away`),
    ...beforeAfter(told.order_before, told.order_after),
  ];
}

export function beforeAfter(before, after) {
  if (!before && !after) return [];
  return [h("dl", { class: "before-after" }, h("dt", {}, "before"), h("dd", {}, orderLine(before)), h("dt", {}, "after"), h("dd", {}, orderLine(after)))];
}
