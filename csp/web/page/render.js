/**
 * Builds the elements that show an agent's text from its markdown tokens.
 *
 * Elements are created one by one and text is inserted as text: there is no HTML string anywhere, so
 * the page can forbid them altogether (`require-trusted-types-for 'script'`, no style attributes).
 */

import { makeCopyButton } from "./copy.js";
import { h } from "./dom.js";
import { hostBehind, safeUrl } from "./links.js";
import { appendSlices, hasManyMarks, headLength, makeMoreButton } from "./slices.js";
import { inWords } from "./speech.js";
import { appendText } from "./text.js";

const FIRST_HEADING = 3;
const LAST_HEADING = 6;
const SAME = ["p", "blockquote", "ul", "thead", "tbody", "tr", "em", "strong", "del"];

/** Creates the element that a token opens; it contains everything up to its closing token. */
const OPENED = {
  ...Object.fromEntries(SAME.map((name) => [name, (parent) => append(parent, name)])),
  h: (parent, [level], context) => append(parent, context.headings.get(level)),
  ol: (parent, [start]) => append(parent, "ol", start === 1 ? {} : { start }),
  li: openItem,
  table: openTable,
  th: (parent, [side]) => append(parent, "th", side ? { scope: "col", class: side } : { scope: "col" }),
  td: (parent, [side]) => append(parent, "td", side ? { class: side } : {}),
  a: openLink,
};

const ALONE = {
  hr: (parent) => append(parent, "hr"),
  br: (parent) => append(parent, "br"),
  code: renderCodeSpan,
  pre: renderCode,
};

/**
 * Renders the parsed beginning of a text from its tokens. A button shows the rest as plain text.
 * @param {string} text
 * @param {{length: number, tokens: Array<string | null | Array<string | number>>}} markdown
 * @param {{isSpeech?: boolean}} [options] whether the text is an agent's, whose commands are shown in words
 * @returns {DocumentFragment}
 */
export function renderTokens(text, { length, tokens }, { isSpeech = false } = {}) {
  if (hasManyMarks(text, length)) return renderPlain(text);
  const fragment = document.createDocumentFragment();
  const context = { text, length, headings: headingsOf(tokens) };
  const opened = [];
  let parent = fragment;
  for (const [at, token] of tokens.entries()) {
    if (typeof token === "string") appendText(parent, isSpeech && startsLine(tokens, at, opened) ? inWords(token, endsLine(tokens, at)) : token);
    else if (token === null) parent = close(opened.pop(), parent);
    else if (ALONE[token[0]]) ALONE[token[0]](parent, token.slice(1), context);
    else {
      opened.push({ parent, token });
      parent = OPENED[token[0]](parent, token.slice(1), context);
    }
  }
  // Each block determines its own direction, and none can reverse the text around it.
  for (const child of fragment.children) child.dir = child.localName === "figure" ? "ltr" : "auto";
  if (length < text.length) fragment.append(makeMoreButton(text, length));
  return fragment;
}

/** Whether a token begins a line of a paragraph that is in nothing else, as a command does. */
function startsLine(tokens, at, opened) {
  const before = tokens[at - 1];
  return opened.length === 1 && opened[0].token[0] === "p" && (before?.[0] === "p" || before?.[0] === "br");
}

const endsLine = (tokens, at) => tokens[at + 1] === null || tokens[at + 1]?.[0] === "br";

/**
 * Shows a text without markdown. A button shows the part beyond `limit` characters.
 * @param {string} text
 * @param {{limit?: number}} [options]
 * @returns {DocumentFragment}
 */
export function renderPlain(text, { limit = 20000 } = {}) {
  const fragment = document.createDocumentFragment();
  const length = headLength(text, limit);
  appendSlices(fragment, text, length);
  if (length < text.length) fragment.append(makeMoreButton(text, length));
  return fragment;
}

function append(parent, name, attributes) {
  const made = h(name, attributes);
  parent.append(made);
  return made;
}

function close({ parent, token }, element) {
  if (element.localName === "a" && element !== parent) closeLink(parent, element, token[1]);
  return parent;
}

/** Maps the heading levels in a text to h3, h4, h5 and h6 in order, so that the outline has no gaps. */
function headingsOf(tokens) {
  const levels = new Set(tokens.filter((token) => Array.isArray(token) && token[0] === "h").map((token) => token[1]));
  const ordered = [...levels].sort();
  return new Map(ordered.map((level, rank) => [level, `h${Math.min(FIRST_HEADING + rank, LAST_HEADING)}`]));
}

function renderCode(parent, [info, text, fence, indent], context) {
  const figure = append(parent, "figure", { class: "code" });
  appendText(append(figure, "figcaption"), info || "code");
  // Even if the text is cut inside this block, the whole block is copied.
  figure.append(makeCopyButton(() => (fence ? `${text}\n${restOfCode(context, fence, indent)}` : text)));
  appendText(append(append(figure, "pre", { tabindex: "0" }), "code"), text);
}

function restOfCode({ text, length }, fence, indent) {
  const rest = text.slice(length);
  const end = rest.search(new RegExp(`^[ \\t>]*\\${fence[0]}{${fence.length},}[ \\t\\r]*$`, "m"));
  const lines = (end < 0 ? rest : rest.slice(0, Math.max(end - 1, 0))).split("\n");
  return lines.map((line) => (line.slice(0, indent).trim() === "" ? line.slice(indent) : line)).join("\n");
}

function openItem(parent, [isDone]) {
  if (isDone === undefined) return append(parent, "li");
  const item = append(parent, "li", { class: "task" });
  const box = append(item, "span", { class: "box", role: "img", "aria-label": isDone ? "done" : "to do" });
  box.textContent = isDone ? "\u2611" : "\u2610";
  item.append(" ");
  return item;
}

function openTable(parent) {
  // Wide tables scroll in their own box, which must be reachable by keyboard.
  const box = append(parent, "div", { class: "table", tabindex: "0", role: "group", "aria-label": "Table" });
  return append(box, "table");
}

// The direction is set last, because otherwise each added node would determine it again.
function renderCodeSpan(parent, [text]) {
  const code = append(parent, "code");
  appendText(code, text);
  code.dir = "auto";
}

// A link cannot contain another one, and without a safe URL only the label's text is shown.
function openLink(parent, [source]) {
  const url = parent.closest?.("a") ? null : safeUrl(source);
  if (!url) return parent;
  return append(parent, "a", { href: url.href, title: url.href, target: "_blank", rel: "noopener noreferrer nofollow" });
}

function closeLink(parent, link, source) {
  if (link.textContent.trim() === "") appendText(link, source);
  link.dir = "auto";
  const host = hostBehind(new URL(link.href), source, link.textContent);
  if (host === null) return;
  parent.append(" ");
  append(parent, "span", { class: "host", dir: "ltr" }).textContent = `(${host})`;
}
