/**
 * Shows long texts in slices, so that no single task holds up the page.
 */

import { appendText, cutBefore } from "./text.js";

const SLICE = 8000;
// A cut looks back this far for the end of a line.
const LOOK_BACK = 2000;

/**
 * Finds how much of a text to show at first.
 * @param {string} text
 * @param {number} limit
 * @returns {number}
 */
export function headLength(text, limit) {
  return text.length <= limit ? text.length : cut(text, 0, limit);
}

/**
 * Appends the first `end` characters of a text.
 * @param {Node} parent
 * @param {string} text
 * @param {number} end
 */
export function appendSlices(parent, text, end) {
  for (let from = 0; from < end; ) {
    const to = cut(text, from, Math.min(SLICE, end - from));
    parent.append(makeSlice(text.slice(from, to)));
    from = to;
  }
}

/**
 * Makes the button that shows a text from `from` on, one slice for each frame.
 * @param {string} text
 * @param {number} from
 * @returns {HTMLButtonElement}
 */
export function makeMoreButton(text, from) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "more";
  button.textContent = `Show all (${sizeOf(text)})`;
  button.addEventListener("click", () => showRest(button, text, from), { once: true });
  return button;
}

function showRest(button, text, from) {
  const had = document.activeElement === button;
  const first = nextSlice(text, from);
  button.replaceWith(first.slice);
  // The button took the focus with it; a reader goes on where the rest begins.
  first.slice.tabIndex = -1;
  if (had) first.slice.focus({ preventScroll: true });
  const step = (last, at) => {
    if (at >= text.length || !last.isConnected) return;
    const next = nextSlice(text, at);
    last.after(next.slice);
    requestAnimationFrame(() => step(next.slice, next.end));
  };
  requestAnimationFrame(() => step(first.slice, first.end));
}

function nextSlice(text, from) {
  const end = cut(text, from, SLICE);
  return { slice: makeSlice(text.slice(from, end)), end };
}

function makeSlice(text) {
  const slice = document.createElement("div");
  slice.className = "plain";
  slice.dir = "auto";
  appendText(slice, text);
  return slice;
}

// After a line where there is one, else between two characters.
function cut(text, from, length) {
  if (from + length >= text.length) return text.length;
  const line = text.slice(from + length - Math.min(LOOK_BACK, length), from + length).lastIndexOf("\n");
  if (line >= 0) return from + length - Math.min(LOOK_BACK, length) + line + 1;
  return Math.max(cutBefore(text, from + length), from + 1);
}

function sizeOf(text) {
  const bytes = new TextEncoder().encode(text).length;
  return bytes < 1_000_000 ? `${Math.ceil(bytes / 1000)} KB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
