// Every switch, the newest first, with its reason in words.

import { h, keyed, setText } from "../dom.js";
import * as format from "../format.js";
import { beforeAfter } from "./timeline.js";

const MOST = 30; // that are listed

export const switches = {
  id: "switches",
  title: "Switches",
  about: "Each change of an order or plan, and why; the newest first.",
  wide: true,
  fits: (run) => run.switches.length > 0,
  make() {
    const list = h("ul", { class: "switches" });
    const more = h("p", { class: "hint" });
    return {
      element: h("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": "Switches" }, list, more),
      update(run) {
        const shown = run.switches.slice(-MOST).reverse();
        keyed(list, shown, (change) => change.id, (change) =>
          h(
            "li",
            {},
            h("p", {}, h("time", {}, format.clock(change.at)), h("strong", {}, change.what), ` because ${change.why ?? "–"}`),
            ...beforeAfter(change.before, change.after),
          ),
        );
        setText(more, run.switch_count > shown.length ? `and ${format.count(run.switch_count - shown.length)} before` : "");
      },
    };
  },
};
