// The plan charts of a session's queries: a region for each plan, and the point of the estimates, which moves.

import { h, keyed, s, setText } from "../dom.js";
import * as format from "../format.js";

const SIDE = 220;
const LEFT = 66;
const TOP = 14;
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const COLOURS = 8;

export const chart = {
  id: "chart",
  title: "Plan charts",
  about: "Each colour and letter is a plan, the best one there. The point is where the estimates are now, the dashed line where they were before.",
  wide: true,
  fits: (run) => run.kind === "session" && (run.values.queries ?? []).some((query) => query.charts?.length),
  make() {
    const element = h("div", { class: "charts" });
    return {
      element,
      update(run) {
        const all = run.values.queries.flatMap((query, place) =>
          (query.charts ?? []).map((told, number) => ({ key: `${place} ${number}`, name: query.name, told })),
        );
        keyed(element, all, (each) => each.key, makeFigure, drawFigure);
      },
    };
  },
};

function makeFigure() {
  const regions = s("g");
  const trail = s("polyline", { class: "trail" });
  const point = s("circle", { r: 7, class: "point" });
  const text = (attributes) => s("text", { class: "axis", ...attributes });
  return h(
    "figure",
    {},
    h("figcaption"),
    s(
      "svg",
      { viewBox: `0 0 ${LEFT + SIDE + 16} ${TOP + SIDE + 44}`, role: "img", class: "picture" },
      regions,
      trail,
      point,
      text({ x: LEFT - 6, y: TOP + 10, "text-anchor": "end" }),
      text({ x: LEFT - 6, y: TOP + SIDE, "text-anchor": "end" }),
      text({ x: LEFT, y: TOP + SIDE + 16 }),
      text({ x: LEFT + SIDE, y: TOP + SIDE + 16, "text-anchor": "end" }),
      text({ x: LEFT + SIDE / 2, y: TOP + SIDE + 34, "text-anchor": "middle", class: "axis axis-name" }),
      text({ x: -(TOP + SIDE / 2), y: 14, transform: "rotate(-90)", "text-anchor": "middle", class: "axis axis-name" }),
    ),
  );
}

function drawFigure(figure, { name, told }) {
  const [caption, picture] = figure.children;
  const [regions, trail, point, ...labels] = picture.children;
  setText(caption, name);
  const plans = JSON.stringify(told.plans);
  if (regions.dataset.plans !== plans) {
    regions.dataset.plans = plans;
    regions.replaceChildren(...drawRegions(told.plans));
  }
  const place = ([right, up]) => [LEFT + right * SIDE, TOP + (1 - up) * SIDE];
  trail.setAttribute("points", [...told.trail, told.here].map((each) => place(each).join(",")).join(" "));
  const [x, y] = place(told.here);
  point.style.cx = `${x}px`;
  point.style.cy = `${y}px`;
  const { up, right } = told;
  [up.high, up.low, right.low, right.high].forEach((value, at) => setText(labels[at], format.number(value)));
  setText(labels[4], right.name);
  setText(labels[5], up.name);
  const row = Math.min(Math.floor(told.here[1] * told.plans.length), told.plans.length - 1);
  const part = Math.min(Math.floor(told.here[0] * told.plans[row].length), told.plans[row].length - 1);
  picture.setAttribute("aria-label", `${up.name} against ${right.name}: the estimates lie in a region of plan ${LETTERS[told.plans[row][part] % 26]}.`);
}

// A rectangle for each run of neighbours in a row, and a letter in the first region of each plan.
function drawRegions(plans) {
  const height = SIDE / plans.length;
  const drawn = [];
  const letters = [];
  const named = new Set();
  plans.forEach((numbers, row) => {
    const width = SIDE / numbers.length;
    const y = TOP + SIDE - (row + 1) * height;
    for (let first = 0; first < numbers.length; ) {
      const plan = numbers[first];
      let last = first;
      while (numbers[last] === plan) last += 1;
      const x = LEFT + first * width;
      drawn.push(s("rect", { x, y, width: (last - first) * width + 0.5, height: height + 0.5, class: `plan plan-${plan % COLOURS}` }));
      if (!named.has(plan)) {
        named.add(plan);
        letters.push(s("text", { x: x + 8, y: y + height - 4, class: "plan-letter" }, LETTERS[plan % 26]));
      }
      first = last;
    }
  });
  return [...drawn, ...letters];
}
