/**
 * Parses the markdown that agents write into a tree of plain objects.
 *
 * Markdown as in chats: a line break is a line break, HTML is text, every block may follow a
 * paragraph without a blank line, and a line that lacks its `>` or its indent has left the block.
 * Time is linear in the text: a line is read once for each level, and levels are bounded.
 */

import { parseInline } from "./inline.js";
import { closesFence, indentOf, isBlank, matchFence, stripIndent } from "./lines.js";
import { matchMarker, readList } from "./lists.js";

const DEEPEST = 16;
const MOST_COLUMNS = 64;
const DELIMITER_CELL = /^:?-+:?$/;

/**
 * @typedef {import("./inline.js").Inline} Inline
 * @typedef {{type: "paragraph", inline: Inline[]} | {type: "heading", level: number, inline: Inline[]}
 *   | {type: "code", info: string, text: string, closed: boolean} | {type: "quote", blocks: Block[]}
 *   | {type: "list", ordered: boolean, start: number, tight: boolean, items: Item[]}
 *   | {type: "table", align: string[], head: Inline[][], rows: Inline[][][]} | {type: "rule"}} Block
 * @typedef {{task: boolean | null, blocks: Block[]}} Item
 * @typedef {{lines: string[], at: number, depth: number, blocks: typeof parseBlocks}} Reader
 */

// In order: `---` is a rule before it is a list, and a fence is nothing but a fence.
const BLOCKS = [
  [matchFence, readFence],
  [matchHeading, readHeading],
  [matchRule, readRule],
  [matchQuote, readQuote],
  [matchMarker, readList],
  [matchTable, readTable],
];

/**
 * Parses a text.
 * @param {string} text
 * @returns {Block[]}
 */
export function parse(text) {
  return parseBlocks(text.split("\n"), 0);
}

function parseBlocks(lines, depth) {
  const reader = { lines, at: 0, depth, mayNest: depth < DEEPEST, inParagraph: false, blocks: parseBlocks };
  const blocks = [];
  while (reader.at < lines.length) {
    if (isBlank(lines[reader.at])) reader.at += 1;
    else blocks.push(readBlock(reader) ?? readParagraph(reader));
  }
  return blocks;
}

function readBlock(reader) {
  for (const [match, read] of BLOCKS) {
    const found = match(reader.lines[reader.at], reader);
    if (found) return read(reader, found);
  }
  return null;
}

function readParagraph(reader) {
  const lines = [];
  reader.inParagraph = true;
  do {
    lines.push(withoutReturn(reader.lines[reader.at]));
    reader.at += 1;
  } while (reader.at < reader.lines.length && continuesParagraph(reader));
  reader.inParagraph = false;
  return { type: "paragraph", inline: parseInline(lines.join("\n")) };
}

function continuesParagraph(reader) {
  const line = reader.lines[reader.at];
  return !isBlank(line) && !BLOCKS.some(([match]) => match(line, reader));
}

function withoutReturn(line) {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

function readFence(reader, fence) {
  const lines = [];
  let closed = false;
  for (reader.at += 1; reader.at < reader.lines.length && !closed; reader.at += 1) {
    const line = reader.lines[reader.at];
    closed = closesFence(line, fence);
    if (!closed) lines.push(stripIndent(line, fence.columns));
  }
  return { type: "code", info: fence.info, text: lines.join("\n"), closed };
}

function matchHeading(line) {
  const start = indentOf(line).length;
  let end = start;
  while (line[end] === "#") end += 1;
  const level = end - start;
  if (level < 1 || level > 6 || (line[end] !== " " && line[end] !== "\t")) return null;
  const text = withoutHashes(line.slice(end).trim());
  return text === "" ? null : { level, text };
}

function withoutHashes(text) {
  let end = text.length;
  while (text[end - 1] === "#") end -= 1;
  return end === 0 || text[end - 1] === " " ? text.slice(0, end).trimEnd() : text;
}

function readHeading(reader, { level, text }) {
  reader.at += 1;
  return { type: "heading", level, inline: parseInline(text) };
}

function matchRule(line) {
  const sign = line[indentOf(line).length];
  if (sign !== "-" && sign !== "*" && sign !== "_") return null;
  let count = 0;
  for (const character of line) {
    if (character === sign) count += 1;
    else if (character !== " " && character !== "\t" && character !== "\r") return null;
  }
  return count >= 3 ? { sign } : null;
}

function readRule(reader) {
  reader.at += 1;
  return { type: "rule" };
}

function matchQuote(line, reader) {
  const at = indentOf(line).length;
  if (line[at] !== ">" || !reader.mayNest) return null;
  return { inside: line.slice(line[at + 1] === " " ? at + 2 : at + 1) };
}

function readQuote(reader) {
  const lines = [];
  for (; reader.at < reader.lines.length; reader.at += 1) {
    const found = matchQuote(reader.lines[reader.at], reader);
    if (!found) break;
    lines.push(found.inside);
  }
  return { type: "quote", blocks: reader.blocks(lines, reader.depth + 1) };
}

function matchTable(line, reader) {
  const next = reader.lines[reader.at + 1];
  if (!next || !line.includes("|") || !next.includes("|") || !next.includes("-")) return null;
  const delimiters = splitRow(next);
  if (delimiters.length > MOST_COLUMNS || !delimiters.every((cell) => DELIMITER_CELL.test(cell))) return null;
  const head = splitRow(line);
  return head.length === delimiters.length ? { head, align: delimiters.map(alignOf) } : null;
}

function alignOf(cell) {
  const right = cell.endsWith(":");
  if (cell.startsWith(":")) return right ? "center" : "left";
  return right ? "right" : "";
}

function readTable(reader, { head, align }) {
  const rows = [];
  for (reader.at += 2; reader.at < reader.lines.length; reader.at += 1) {
    const line = reader.lines[reader.at];
    if (!line.includes("|")) break;
    rows.push(splitRow(line).map(parseInline));
  }
  return { type: "table", align, head: head.map(parseInline), rows };
}

/** Splits a row into its cells; a backslash keeps a bar inside its cell. */
function splitRow(line) {
  const text = line.trim();
  const cells = [];
  let cell = "";
  let from = text[0] === "|" ? 1 : 0;
  for (let at = text.indexOf("|", from); at >= 0; at = text.indexOf("|", from)) {
    const escaped = text[at - 1] === "\\" && at > from;
    cell += text.slice(from, escaped ? at - 1 : at);
    if (escaped) cell += "|";
    else {
      cells.push(cell.trim());
      cell = "";
    }
    from = at + 1;
  }
  cell += text.slice(from);
  if (cell !== "" || cells.length === 0) cells.push(cell.trim());
  return cells;
}
