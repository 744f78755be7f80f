// Fallbacks and other notes: nothing is silent.

import { h, keyed, setText } from "../dom.js";

export const notes = {
  id: "notes",
  title: "Notes",
  about: "Fallbacks, files that could not be used, and the reason for the plan.",
  wide: true,
  fits: (run) => (run.values.notes ?? []).length > 0 || Boolean(run.values.why),
  make() {
    const list = h("ul", { class: "facts" });
    return {
      element: list,
      update(run) {
        const told = [...(run.values.why ? [`plan: ${run.values.why}`] : []), ...(run.values.notes ?? [])];
        keyed(list, told, (_, place) => String(place), () => h("li"), (item, text) => setText(item, text));
      },
    };
  },
};
