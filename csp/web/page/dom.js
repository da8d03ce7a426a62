// Create elements. No code on this page parses a string as HTML.

const SVG = "http://www.w3.org/2000/svg";

/**
 * Create an element: `on` contains listeners, `data` data-* attributes, and `vars` CSS variables,
 * while all others are attributes; true sets one, and false or null omits it.
 * @param {string} tag
 * @param {Record<string, any>} [props]
 * @param {...(Node | string | null | undefined | false)} children
 */
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** Create an SVG element. */
export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(element, { on = {}, data = {}, vars = {}, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) setAttribute(element, name, value);
  for (const [name, value] of Object.entries(data)) element.dataset[name] = value;
  for (const [name, value] of Object.entries(vars)) element.style.setProperty(`--${name}`, value);
  for (const [name, listener] of Object.entries(on)) element.addEventListener(name, listener);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

function setAttribute(element, name, value) {
  if (value === false || value === null || value === undefined) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : String(value));
}

/** Change attributes of an existing element, touching only those that differ. */
export function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    const wanted = value === false || value === null || value === undefined ? null : value === true ? "" : String(value);
    if (element.getAttribute(name) !== wanted) setAttribute(element, name, value);
  }
}

/** Change an element's text only if it differs, because a screen reader would read it again. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Replace the content of an element. */
export function swap(element, ...children) {
  element.replaceChildren(...children.flat().filter(Boolean));
}

/** Replace the content of an element, and restore the focus to the element with the same id. */
export function swapFocused(element, ...children) {
  const focused = element.contains(document.activeElement) ? document.activeElement.id : "";
  swap(element, ...children);
  if (focused) document.getElementById(focused)?.focus();
}

/** Return a function that reports whether a value differs from the previous one, to avoid redrawing. */
export function changes() {
  let last = "";
  return (value) => {
    const before = last;
    last = JSON.stringify(value);
    return last !== before;
  };
}

/** Fill a list with choices, [value, text] each, keeping the current selection. */
export function offer(list, choices) {
  if (choices.map(([value]) => value).join() === [...list.options].map((option) => option.value).join()) return;
  const chosen = list.value;
  swap(list, ...choices.map(([value, text = value]) => h("option", { value }, text)));
  if (choices.some(([value]) => value === chosen)) list.value = chosen;
}

/** Add an entry to a map with at most `most` entries, dropping the oldest. */
export function keep(map, key, value, most) {
  map.delete(key);
  map.set(key, value);
  if (map.size > most) map.delete(map.keys().next().value);
}

/** A button with a text. */
export function button(text, onClick, props = {}) {
  return h("button", { type: "button", ...props, on: { click: onClick, ...(props.on ?? {}) } }, text);
}

/** @param {string} id */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}
