// Numbers and times as people read them.

const digits = (value, most) => value.toLocaleString("en", { maximumSignificantDigits: most });

export function count(value) {
  if (value === null || value === undefined) return "–";
  if (Math.abs(value) < 10000) return Math.round(value).toLocaleString("en");
  for (const [unit, factor] of [["G", 1e9], ["M", 1e6]]) {
    if (Math.abs(value) >= factor) return `${digits(value / factor, 3)} ${unit}`;
  }
  return `${digits(value / 1e3, 3)} k`;
}

export function number(value) {
  return value === null || value === undefined ? "–" : digits(value, 3);
}

export function share(value) {
  return value === null || value === undefined ? "–" : `${digits(100 * value, 3)}%`;
}

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  const least = Math.abs(value);
  if (least >= 7200) return `${digits(value / 3600, 3)} h`;
  if (least >= 120) return `${digits(value / 60, 3)} min`;
  if (least >= 1 || least === 0) return `${digits(value, 3)} s`;
  for (const [unit, factor] of [["ms", 1e-3], ["µs", 1e-6]]) {
    if (least >= factor) return `${digits(value / factor, 3)} ${unit}`;
  }
  return `${digits(value / 1e-9, 3)} ns`;
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  for (const [unit, factor] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (value >= factor) return `${digits(value / factor, 3)} ${unit}`;
  }
  return `${value} bytes`;
}

export function clock(at) {
  return new Date(1000 * at).toLocaleTimeString("en-GB");
}

export function ago(at, now) {
  const passed = Math.max(now - at, 0);
  return passed < 2 ? "now" : `${seconds(Math.round(passed))} ago`;
}
