// The runs as this page knows them: a snapshot, and the updates since. Points have the names of SERIES, in that order.

export const SERIES = ["at", "rows", "results", "evaluations", "cost", "cost_as_written", "memory", "lag", "fidelity"];
const MOST_POINTS = 1200;
const MOST_MARKS = 500;
const RATE_SECONDS = 2; // over which a rate is taken at least

export class Runs {
  constructor() {
    this.byToken = new Map();
    this.skew = 0; // seconds that the server's clock is ahead
  }

  snapshot({ now, runs }) {
    this.skew = now - Date.now() / 1000;
    this.byToken = new Map(runs.map((run) => [run.run, run]));
  }

  update({ now, runs }) {
    this.skew = now - Date.now() / 1000;
    for (const part of runs) {
      const known = this.byToken.get(part.run);
      if (!known) {
        this.byToken.set(part.run, { values: {}, points: [], switches: [], drifts: [], ...part });
        continue;
      }
      const { values = {}, points = [], switches = [], drifts = [], ...head } = part;
      Object.assign(known, head);
      Object.assign(known.values, values);
      known.points = thinned([...known.points, ...points]);
      known.switches = [...known.switches, ...switches].slice(-MOST_MARKS);
      known.drifts = [...known.drifts, ...drifts].slice(-MOST_MARKS);
    }
  }

  get now() {
    return Date.now() / 1000 + this.skew;
  }

  // Those that run come first, then the newest.
  get listed() {
    const place = { running: 0, stale: 1, failed: 2, ended: 2 };
    return [...this.byToken.values()].sort(
      (one, other) => place[one.state] - place[other.state] || other.began_at - one.began_at,
    );
  }
}

function thinned(points) {
  if (points.length <= MOST_POINTS) return points;
  const half = points.length >> 1;
  return points.filter((_, place) => place >= half || place % 2 === 0);
}

export function column(run, name) {
  const place = SERIES.indexOf(name);
  return run.points.map((point) => point[place]);
}

// How fast a count grows at each point, and in between: over two seconds or more.
export function rates(run, name) {
  const at = column(run, "at");
  const counts = column(run, name);
  let from = 0;
  return counts.map((value, place) => {
    while (from + 1 < place && at[place] - at[from + 1] >= RATE_SECONDS) from += 1;
    if (place === 0 || value === null || counts[from] === null || at[place] === at[from]) return null;
    return Math.max((value - counts[from]) / (at[place] - at[from]), 0);
  });
}

export function latest(values) {
  for (let place = values.length - 1; place >= 0; place -= 1) {
    if (values[place] !== null && values[place] !== undefined) return values[place];
  }
  return null;
}

// What the written order would do: the measured rate, times the ratio of the costs of a row.
export function ratesAsWritten(run) {
  const cost = column(run, "cost");
  const written = column(run, "cost_as_written");
  return rates(run, "rows").map((rate, place) =>
    rate === null || !cost[place] || !written[place] ? null : (rate * cost[place]) / written[place],
  );
}

export function evaluationsPerRow(run) {
  const rows = rates(run, "rows");
  return rates(run, "evaluations").map((rate, place) =>
    rate === null || !rows[place] ? null : rate / rows[place],
  );
}
