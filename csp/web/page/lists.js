/**
 * Parses lists, for the blocks of a text.
 */

import { TAB, closesFence, indentOf, isBlank, matchFence, stripIndent } from "./lines.js";

const BULLETS = new Set(["-", "*", "+"]);
const ORDERED = /(\d{1,9})([.)])/y;
const TASK = /^\[([ xX])\](?=\s)/;

/** Matches the first line of a list, or of its next item. */
export function matchMarker(line, reader) {
  if (!reader.mayNest) return null;
  const { length, columns } = indentOf(line);
  const number = BULLETS.has(line[length]) ? null : matchNumber(line, length);
  const size = number ? number[0].length : 1;
  if ((!number && !BULLETS.has(line[length])) || !isSpace(line[length + size])) return null;
  const start = number ? Number(number[1]) : null;
  const inside = line.slice(length + size);
  const gap = indentOf(inside);
  const isEmpty = gap.length === inside.length;
  // A year or a lone dash within a paragraph starts no list.
  if (reader.inParagraph && (isEmpty || (start ?? 1) !== 1)) return null;
  const space = isEmpty || gap.columns > TAB ? 1 : gap.columns;
  const sign = line[length + size - 1];
  return { sign, start, columns, width: size + space, inside: stripIndent(inside, space) };
}

function matchNumber(line, at) {
  ORDERED.lastIndex = at;
  return ORDERED.exec(line);
}

function isSpace(character) {
  return character === undefined || character === " " || character === "\t" || character === "\r";
}

/** Reads the list that begins with `marker`. */
export function readList(reader, marker) {
  const items = [];
  let tight = true;
  for (let next = marker; next; ) {
    items.push(makeItem(takeItem(reader, next), reader));
    const end = reader.at;
    while (reader.at < reader.lines.length && isBlank(reader.lines[reader.at])) reader.at += 1;
    const apart = reader.at > end;
    next = nextMarker(reader, marker);
    if (next && apart) tight = false;
  }
  return { type: "list", ordered: marker.start !== null, start: marker.start ?? 1, tight, items };
}

function nextMarker(reader, first) {
  const line = reader.lines[reader.at];
  const found = line === undefined ? null : matchMarker(line, reader);
  return found?.sign === first.sign && !isRule(found) ? found : null;
}

// `- - -` under a list of dashes is a rule.
function isRule({ sign, inside }) {
  let count = 0;
  for (let at = 0; at < inside.length; at += 1) {
    if (inside[at] === sign) count += 1;
    else if (!isSpace(inside[at])) return false;
  }
  return count >= 2;
}

/**
 * Takes the lines of one item, without their indent. Two columns are enough to belong to it,
 * though a number is wider, and within a block of code no indent is asked at all.
 */
function takeItem(reader, marker) {
  const needed = marker.columns + Math.min(marker.width, 2);
  const lines = [marker.inside];
  let fence = matchFence(marker.inside);
  let end = reader.at + 1;
  for (let at = end; at < reader.lines.length; at += 1) {
    const line = reader.lines[at];
    if (isBlank(line)) continue;
    if (!fence && indentOf(line).columns < needed) break;
    for (; end < at; end += 1) lines.push(reader.lines[end]);
    const inside = stripIndent(line, marker.columns + marker.width);
    lines.push(inside);
    end = at + 1;
    fence = fence ? (closesFence(inside, fence) ? null : fence) : matchFence(inside);
  }
  reader.at = end;
  return lines;
}

function makeItem(lines, reader) {
  const task = TASK.exec(lines[0]);
  const rest = task ? [lines[0].slice(task[0].length + 1), ...lines.slice(1)] : lines;
  return { task: task ? task[1] !== " " : null, blocks: reader.blocks(rest, reader.depth + 1) };
}
