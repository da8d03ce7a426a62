/**
 * Builds the elements that show an agent's text.
 *
 * Elements are made one by one and text goes in as text: there is no string of HTML anywhere, so
 * the page can forbid it altogether (`require-trusted-types-for 'script'`, no style attributes).
 */

import { makeCopyButton } from "./copy.js";
import { parse } from "./markdown.js";
import { appendSlices, headLength, makeMoreButton } from "./slices.js";
import { appendText } from "./text.js";

const FIRST_HEADING = 4;
const LAST_HEADING = 6;

const BLOCKS = {
  paragraph: ({ inline }) => withInline(element("p"), inline),
  heading: ({ level, inline }, context) => withInline(element(context.headings.get(level)), inline),
  code: renderCode,
  quote: ({ blocks }, context) => withBlocks(element("blockquote"), blocks, context),
  list: renderList,
  table: renderTable,
  rule: () => element("hr"),
};

const INLINES = {
  text: ({ text }, parent) => appendText(parent, text),
  code: renderCodeSpan,
  break: (_, parent) => append(parent, "br"),
  strong: ({ inline }, parent) => withInline(append(parent, "strong"), inline),
  em: ({ inline }, parent) => withInline(append(parent, "em"), inline),
  del: ({ inline }, parent) => withInline(append(parent, "del"), inline),
  link: renderLink,
};

/**
 * Shows a text with its markdown. Beyond `limit` characters a button shows the rest as plain text.
 * @param {string} text
 * @param {{limit?: number}} [options]
 * @returns {DocumentFragment}
 */
export function renderMarkdown(text, { limit = 20000 } = {}) {
  const fragment = document.createDocumentFragment();
  const length = headLength(text, limit);
  const blocks = parse(text.slice(0, length));
  const context = { text, cut: length < text.length, codes: 0, headings: headingsOf(blocks) };
  withBlocks(fragment, blocks, context);
  // Each block finds its own direction, and none can turn the text around it.
  for (const child of fragment.children) child.dir = child.localName === "figure" ? "ltr" : "auto";
  if (context.cut) fragment.append(makeMoreButton(text, length));
  return fragment;
}

/**
 * Shows a text as it is. Beyond `limit` characters a button shows the rest.
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

function element(name, attributes = {}) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function append(parent, name, attributes) {
  const made = element(name, attributes);
  parent.append(made);
  return made;
}

function withInline(parent, inline) {
  for (const node of inline) INLINES[node.type](node, parent);
  return parent;
}

function withBlocks(parent, blocks, context) {
  for (const block of blocks) parent.append(BLOCKS[block.type](block, context));
  return parent;
}

/** Gives the levels that a text uses to h4, h5 and h6 in order, so the outline has no gap. */
function headingsOf(blocks) {
  const levels = new Set();
  const collect = (list) => {
    for (const block of list) {
      if (block.type === "heading") levels.add(block.level);
      else if (block.type === "quote") collect(block.blocks);
      else if (block.type === "list") block.items.forEach((item) => collect(item.blocks));
    }
  };
  collect(blocks);
  const ordered = [...levels].sort();
  return new Map(ordered.map((level, rank) => [level, `h${Math.min(FIRST_HEADING + rank, LAST_HEADING)}`]));
}

function renderCode({ info, text, closed }, context) {
  const index = context.codes;
  context.codes += 1;
  // The cut may have fallen into this block; what is copied is the whole of it all the same.
  const source = () => (context.cut && !closed ? codeAt(parse(context.text), index) ?? text : text);
  const figure = element("figure", { class: "code" });
  appendText(append(figure, "figcaption"), info || "code");
  figure.append(makeCopyButton(source));
  const code = append(append(figure, "pre", { tabindex: "0" }), "code");
  appendText(code, text);
  return figure;
}

function codeAt(blocks, index) {
  const texts = [];
  const collect = (list) => {
    for (const block of list) {
      if (block.type === "code") texts.push(block.text);
      else if (block.type === "quote") collect(block.blocks);
      else if (block.type === "list") block.items.forEach((item) => collect(item.blocks));
    }
  };
  collect(blocks);
  return texts[index];
}

function renderList({ ordered, start, tight, items }, context) {
  const list = element(ordered ? "ol" : "ul", ordered && start !== 1 ? { start } : {});
  for (const { task, blocks } of items) {
    const item = append(list, "li", task === null ? {} : { class: "task" });
    if (task !== null) renderTask(item, task);
    const [first, ...rest] = blocks;
    const bare = tight && first?.type === "paragraph";
    if (bare) withInline(item, first.inline);
    withBlocks(item, bare ? rest : blocks, context);
  }
  return list;
}

function renderTask(item, done) {
  const box = append(item, "span", { class: "box", role: "img", "aria-label": done ? "done" : "to do" });
  box.textContent = done ? "\u2611" : "\u2610";
  item.append(" ");
}

function renderTable({ align, head, rows }) {
  // Wide tables scroll in a box of their own, which the keyboard must reach.
  const box = element("div", { class: "table", tabindex: "0", role: "group", "aria-label": "Table" });
  const table = append(box, "table");
  renderRow(append(append(table, "thead"), "tr"), "th", head, align);
  const body = append(table, "tbody");
  for (const row of rows) renderRow(append(body, "tr"), "td", row, align);
  return box;
}

function renderRow(row, name, cells, align) {
  cells.forEach((inline, column) => {
    const cell = append(row, name, name === "th" ? { scope: "col" } : {});
    if (align[column]) cell.className = align[column];
    withInline(cell, inline);
  });
}

// A direction is set last, or each node that is added looks for it again.
function renderCodeSpan({ text }, parent) {
  const code = append(parent, "code");
  appendText(code, text);
  code.dir = "auto";
}

function renderLink({ href, host, inline }, parent) {
  const attributes = { href, title: href, target: "_blank", rel: "noopener noreferrer nofollow" };
  withInline(append(parent, "a", attributes), inline).dir = "auto";
  if (host === null) return;
  parent.append(" ");
  append(parent, "span", { class: "host", dir: "ltr" }).textContent = `(${host})`;
}
