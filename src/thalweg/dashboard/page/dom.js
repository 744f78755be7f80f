// Makes elements. Text from users only ever becomes a text node: nothing here takes HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

// Sets the text of an element if it differs, so that a screen reader is not told the same again.
export function setText(element, text) {
  const wanted = String(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

// Makes the children of an element those of a list of values, keeping the element of each key.
export function keyed(parent, values, keyOf, make, update) {
  const known = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  const wanted = values.map((value, place) => {
    const key = keyOf(value, place);
    const child = known.get(key) ?? make(value, place);
    child.dataset.key = key;
    known.delete(key);
    update?.(child, value, place);
    return child;
  });
  for (const child of known.values()) child.remove();
  wanted.forEach((child, place) => {
    if (parent.children[place] !== child) parent.insertBefore(child, parent.children[place] ?? null);
  });
}

// A key for each name: a name that occurs twice gets a number.
export function distinct(names) {
  const counts = new Map();
  return names.map((name) => {
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    return `${name} ${count}`;
  });
}

export function prefersLessMotion() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

// An arrow-separated order, in which each name is an element of its own.
export function orderLine(names) {
  return h(
    "ol",
    { class: "order" },
    (names ?? []).map((name) => h("li", {}, name)),
  );
}
