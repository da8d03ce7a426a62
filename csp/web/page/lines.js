/**
 * Measures the lines of a text, for its blocks.
 */

/** The columns that a tab goes on to. */
export const TAB = 4;

/** Tells whether a line holds nothing but space. */
export function isBlank(line) {
  return indentOf(line).length === line.length;
}

/** Measures the space before a line, in characters and in columns. */
export function indentOf(line) {
  let columns = 0;
  for (let length = 0; ; length += 1) {
    const character = line[length];
    if (character === " ") columns += 1;
    else if (character === "\t") columns += TAB - (columns % TAB);
    else if (character !== "\r" || length + 1 < line.length) return { length, columns };
  }
}

/** Takes at most `columns` of the space before a line away. */
export function stripIndent(line, columns) {
  let taken = 0;
  for (let length = 0; ; length += 1) {
    if (taken === columns) return line.slice(length);
    if (taken > columns) return " ".repeat(taken - columns) + line.slice(length);
    if (line[length] === " ") taken += 1;
    else if (line[length] === "\t") taken += TAB - (taken % TAB);
    else return line.slice(length);
  }
}

/** Matches the line that opens a block of code. */
export function matchFence(line) {
  const indent = indentOf(line);
  const sign = line[indent.length];
  if (sign !== "`" && sign !== "~") return null;
  let end = indent.length + 1;
  while (line[end] === sign) end += 1;
  const size = end - indent.length;
  const info = line.slice(end).trim();
  // Otherwise ```x``` on one line, a code span, would swallow what follows.
  if (size < 3 || (sign === "`" && info.includes("`"))) return null;
  return { sign, size, info, columns: indent.columns };
}

/** Tells whether a line closes the block of code that `fence` opened. */
export function closesFence(line, fence) {
  const text = line.trim();
  if (text.length < fence.size || text[0] !== fence.sign) return false;
  for (let at = 1; at < text.length; at += 1) {
    if (text[at] !== fence.sign) return false;
  }
  return true;
}
