/**
 * Shows long texts in slices, so that no single task blocks the page.
 */

import { button } from "./dom.js";
import { cutBefore, endOfMarks, textElement } from "./text.js";

const SLICE = 8000;
// The distance to search back for a line end at which to cut.
const LOOK_BACK = 2000;
// Short lines and marks produce many elements with few characters.
const MOST_LINES = 1000;
const MOST_MARKS = 2000;

/**
 * Returns the number of characters to show at first.
 * @param {string} text
 * @param {number} limit
 * @returns {number}
 */
export function headLength(text, limit) {
  return cut(text, 0, Math.min(limit, endOfLine(text, MOST_LINES)));
}

/**
 * Returns whether the beginning of a text needs more marks than a page can lay out at once.
 * @param {string} text
 * @param {number} length
 * @returns {boolean}
 */
export function hasManyMarks(text, length) {
  return endOfMarks(text, 0, length, MOST_MARKS) < length;
}

function endOfLine(text, count) {
  let end = 0;
  for (let line = 0; line < count; line += 1) {
    const at = text.indexOf("\n", end);
    if (at < 0) return text.length;
    end = at + 1;
  }
  return end;
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
 * Creates a button that shows a text from `from` on, one slice per frame.
 * @param {string} text
 * @param {number} from
 * @returns {HTMLButtonElement}
 */
export function makeMoreButton(text, from) {
  return button(`Show all (${sizeOf(text)})`, (event) => showRest(event.currentTarget, text, from), { class: "more" });
}

function showRest(pressed, text, from) {
  const had = document.activeElement === pressed;
  const first = nextSlice(text, from);
  pressed.replaceWith(first.slice);
  // The focus disappeared with the button; move it to the start of the rest.
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
  const slice = textElement("div", { class: "plain" }, text);
  slice.dir = "auto"; // last, because otherwise each added node would determine the direction again
  return slice;
}

// After a line if possible, else between two characters.
function cut(text, from, length) {
  const end = endOfMarks(text, from, Math.min(from + length, text.length), MOST_MARKS);
  if (end === text.length) return end;
  const start = Math.max(end - LOOK_BACK, from);
  const line = text.slice(start, end).lastIndexOf("\n");
  if (line >= 0) return start + line + 1;
  return Math.max(cutBefore(text, end), from + 1);
}

function sizeOf(text) {
  const bytes = new TextEncoder().encode(text).length;
  return bytes < 1_000_000 ? `${Math.ceil(bytes / 1000)} KB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
