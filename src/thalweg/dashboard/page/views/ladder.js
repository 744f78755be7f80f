// The order of predicates as a ladder. When the order changes, each rung moves to its new place.

import { distinct, h, keyed, prefersLessMotion, setText } from "../dom.js";
import * as format from "../format.js";

const MOVE_MILLISECONDS = 700;

function rung() {
  return h(
    "li",
    { class: "rung" },
    h("span", { class: "place" }),
    h(
      "div",
      { class: "rung-main" },
      h("div", { class: "rung-line" }, h("span", { class: "name" }), h("span", { class: "moved" }), h("span", { class: "badge" })),
      h("div", { class: "drop" }, h("span", { class: "drop-bar" })),
      h("div", { class: "rung-facts" }, h("span"), h("span")),
    ),
  );
}

// What a predicate drops now, by the sample of recent rows, and what it has dropped of all rows.
function dropsText(predicate, dropped) {
  if (dropped === null || dropped === undefined) return "nothing known yet";
  const rate = predicate.drop_rate;
  const known = rate === null || rate === undefined ? "" : `; ${format.share(rate)} of ${format.count(predicate.rows_seen)} rows so far`;
  return `drops ${format.share(dropped)} now${known}`;
}

function movedText(place, written) {
  if (place === written) return "as written";
  return `written at place ${written + 1}`;
}

export const ladder = {
  id: "ladder",
  title: "Order",
  about: "Predicates in the order in which they run now. The bar is the share that each drops now, of the rows that reach it.",
  fits: (run) => run.kind === "where" && (run.values.predicates ?? []).length > 0,
  make() {
    const rungs = h("ol", { class: "ladder" });
    const told = h("p", { class: "sr-only", role: "status" });
    let before = null;
    return {
      element: h("div", {}, rungs, told),
      update(run) {
        const predicates = run.values.predicates;
        const keys = distinct(predicates.map((each) => each.name));
        const written = distinct(run.values.as_written ?? []);
        const order = keys.join("\n");
        const hasChanged = before !== null && before !== order;
        const tops = new Map([...rungs.children].map((child) => [child.dataset.key, child.getBoundingClientRect().top]));
        keyed(rungs, predicates, (_, place) => keys[place], rung, (item, predicate, place) => {
          const dropped = predicate.profile_drop_share ?? predicate.drop_rate;
          setText(item.querySelector(".place"), place + 1);
          setText(item.querySelector(".name"), predicate.name);
          setText(item.querySelector(".badge"), predicate.runs_in);
          item.querySelector(".drop-bar").style.width = `${100 * (dropped ?? 0)}%`;
          const [drops, cost] = item.querySelector(".rung-facts").children;
          setText(drops, dropsText(predicate, dropped));
          setText(cost, predicate.cost === null ? "" : `${format.seconds(predicate.cost)} a row`);
          setText(item.querySelector(".moved"), movedText(place, written.indexOf(keys[place])));
        });
        if (hasChanged) {
          setText(told, `The order is now ${predicates.map((each) => each.name).join(", ")}.`);
          move([...rungs.children], tops);
        }
        before = order;
      },
    };
  },
};

// First, last, invert, play: each rung starts where it was, and goes to where it is.
function move(items, tops) {
  if (prefersLessMotion()) return;
  for (const item of items) {
    const top = tops.get(item.dataset.key);
    const by = top === undefined ? 0 : top - item.getBoundingClientRect().top;
    if (!by) continue;
    item.classList.add("moving");
    const animation = item.animate([{ transform: `translateY(${by}px)` }, { transform: "none" }], {
      duration: MOVE_MILLISECONDS,
      easing: "cubic-bezier(.2, .8, .2, 1)",
    });
    animation.finished.then(
      () => item.classList.remove("moving"),
      () => item.classList.remove("moving"),
    );
  }
}
