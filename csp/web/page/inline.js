/**
 * Parses the inside of a paragraph: code spans, emphasis, links, line breaks.
 *
 * Three passes, each linear: tokens; which runs of `*`, `_` or `~~` belong together; the tree.
 * No pass looks ahead without a bound that the text behind it pays for.
 */

import { bareUrl, hostBehind, safeUrl } from "./links.js";
import { matchRuns, readRun } from "./runs.js";

const DEEPEST = 16;
const DEEPEST_PARENTHESES = 8;
const LONGEST_ADDRESS = 2048;
const PLAIN = /[^\\`*_~[\]!<hH\n]+/y;
// Only what this parser gives a meaning to: a path or a pattern keeps its other backslashes.
const ESCAPABLE = new Set([..."*_~`[]|#<>"]);
const WORD = /[A-Za-z0-9]/;

/**
 * @typedef {{type: "text", text: string} | {type: "code", text: string} | {type: "break"}
 *   | {type: "strong" | "em" | "del", inline: Inline[]}
 *   | {type: "link", href: string, host: string | null, inline: Inline[]}} Inline
 */

const READERS = {
  "\\": readEscape,
  "`": readCode,
  "*": readEmphasis,
  _: readEmphasis,
  "~": readEmphasis,
  "[": readOpening,
  "!": readOpening,
  "]": readClosing,
  "<": readAngle,
  h: readBare,
  H: readBare,
  "\n": readBreak,
};

/**
 * Parses a text without blocks.
 * @param {string} text
 * @returns {Inline[]}
 */
export function parseInline(text) {
  const state = {
    text,
    at: 0,
    from: 0, // where the plain text began that is not yet a token
    tokens: [],
    runs: [],
    brackets: [],
    ticks: null,
    lastLink: text.lastIndexOf("]("),
  };
  while (state.at < text.length) {
    PLAIN.lastIndex = state.at;
    if (PLAIN.test(text)) state.at = PLAIN.lastIndex;
    else if (!READERS[text[state.at]](state)) state.at += 1;
  }
  emit(state, text.length);
  matchRuns(state.runs, 0);
  return build(state.tokens);
}

/** Makes a token of the plain text so far, adds `tokens`, and goes on at `end`. */
function emit(state, end, ...tokens) {
  if (state.from < state.at) state.tokens.push({ type: "text", text: state.text.slice(state.from, state.at) });
  state.tokens.push(...tokens);
  state.at = state.from = end;
}

function readEscape(state) {
  if (!ESCAPABLE.has(state.text[state.at + 1])) return false;
  emit(state, state.at + 1);
  state.at += 1;
  return true;
}

function readBreak(state) {
  emit(state, state.at + 1, { type: "break" });
  return true;
}

function readCode(state) {
  const size = runLength(state.text, state.at);
  const start = state.at + size;
  const end = nextTicks(state, size, start);
  if (end < 0) {
    state.at = start;
  } else {
    emit(state, end + size, { type: "code", text: codeText(state.text.slice(start, end)) });
  }
  return true;
}

// A space on each side only keeps backticks apart from the fence.
function codeText(source) {
  const text = source.replaceAll("\n", " ");
  const padded = text.startsWith(" ") && text.endsWith(" ") && text.trim() !== "";
  return padded ? text.slice(1, -1) : text;
}

/** Finds the next run of exactly `size` backticks; each run is passed over once for each size. */
function nextTicks(state, size, from) {
  state.ticks ??= allTicks(state.text);
  const places = state.ticks.get(size);
  if (!places) return -1;
  while (places.next < places.at.length && places.at[places.next] < from) places.next += 1;
  return places.at[places.next] ?? -1;
}

function allTicks(text) {
  const bySize = new Map();
  for (let at = text.indexOf("`"); at >= 0; ) {
    const size = runLength(text, at);
    if (!bySize.has(size)) bySize.set(size, { at: [], next: 0 });
    bySize.get(size).at.push(at);
    at = text.indexOf("`", at + size);
  }
  return bySize;
}

function runLength(text, start) {
  let end = start + 1;
  while (text[end] === text[start]) end += 1;
  return end - start;
}

function readEmphasis(state) {
  const size = runLength(state.text, state.at);
  const run = readRun(state.text, state.at, size);
  if (run) {
    emit(state, state.at + size, run);
    state.runs.push(run);
  } else {
    state.at += size;
  }
  return true;
}

function readOpening(state) {
  const { text, at } = state;
  const sign = text[at] === "!" ? "![" : "[";
  if (at > state.lastLink || !text.startsWith(sign, at)) return false;
  emit(state, at + sign.length, { type: "text", text: sign });
  state.brackets.push({ index: state.tokens.length - 1, end: state.at, runs: state.runs.length });
  return true;
}

function readClosing(state) {
  const bracket = state.brackets.pop();
  const target = bracket && readTarget(state.text, state.at + 1);
  const url = target && safeUrl(target.source);
  if (!url) return false;
  const label = state.text.slice(bracket.end, state.at);
  const raw = state.text.slice(state.at, target.end);
  emit(state, target.end);
  closeLabel(state, bracket);
  if (label.trim() === "") state.tokens.push({ type: "text", text: target.source });
  const shown = label.trim() === "" ? target.source : label;
  const open = { type: "open", raw: state.tokens[bracket.index].text };
  open.node = { type: "link", href: url.href, host: hostBehind(url, target.source, shown), inline: [] };
  state.tokens[bracket.index] = open;
  state.tokens.push({ type: "close", raw });
  return true;
}

// Emphasis does not cross the border of a link, and a link holds no other.
function closeLabel(state, bracket) {
  matchRuns(state.runs, bracket.runs);
  state.runs.length = bracket.runs;
  state.brackets.length = 0;
  for (let index = bracket.index + 1; index < state.tokens.length; index += 1) {
    const token = state.tokens[index];
    if (token.type === "link") state.tokens[index] = token.inline[0];
  }
}

/**
 * Reads `(address)`. Where one try passes over the start of another, it stands one parenthesis
 * deeper, so the bound on depth keeps all tries together linear.
 */
function readTarget(text, start) {
  if (text[start] !== "(") return null;
  if (text[start + 1] === "<") return readAngleTarget(text, start + 2);
  let depth = 0;
  for (let at = start; at < text.length && at - start < LONGEST_ADDRESS; at += 1) {
    const character = text[at];
    if (character === " " || character === "\n" || character === "<") return null;
    if (character === "(" && ++depth > DEEPEST_PARENTHESES) return null;
    if (character === ")" && --depth === 0) return { source: text.slice(start + 1, at), end: at + 1 };
  }
  return null;
}

function readAngleTarget(text, start) {
  for (let at = start; at < text.length && at - start < LONGEST_ADDRESS; at += 1) {
    const character = text[at];
    if (character === "\n" || character === "<") return null;
    if (character === ">") return text[at + 1] === ")" ? { source: text.slice(start, at), end: at + 2 } : null;
  }
  return null;
}

function readAngle(state) {
  const found = bareUrl(state.text, state.at + 1);
  if (!found || state.text[found.stop] !== ">") return false;
  const source = state.text.slice(state.at + 1, found.stop);
  const url = safeUrl(source);
  if (!url) return false;
  emit(state, found.stop + 1, bareLink(url, source));
  return true;
}

function readBare(state) {
  const { text, at } = state;
  if (at > 0 && WORD.test(text[at - 1])) return false;
  const found = bareUrl(text, at);
  if (!found) return false;
  const source = text.slice(at, found.end);
  const url = safeUrl(source);
  if (url) emit(state, found.end, bareLink(url, source));
  else state.at = found.stop; // read once and never again
  return true;
}

function bareLink(url, source) {
  const inline = [{ type: "text", text: source }];
  return { type: "link", href: url.href, host: hostBehind(url, source, source), inline };
}

/** Nests the tokens; what would lie too deep stays the characters it was written with. */
function build(tokens) {
  const root = [];
  const stack = [];
  let inline = root;
  const enter = ({ node, raw }) => {
    const fits = stack.length < DEEPEST;
    stack.push(fits ? inline : null);
    if (fits) {
      inline.push(node);
      inline = node.inline;
    } else {
      add(inline, raw);
    }
  };
  const leave = ({ raw }) => {
    const outer = stack.pop();
    if (outer) inline = outer;
    else add(inline, raw);
  };
  for (const token of tokens) {
    if (token.type === "text") add(inline, token.text);
    else if (token.type === "open") enter(token);
    else if (token.type === "close") leave(token);
    else if (token.type !== "run") inline.push(token);
    else {
      token.closed?.forEach(leave);
      if (token.left > 0) add(inline, token.sign.repeat(token.left));
      token.opened?.reverse().forEach(enter);
    }
  }
  return root;
}

function add(inline, text) {
  const last = inline.at(-1);
  if (last?.type === "text") last.text += text;
  else inline.push({ type: "text", text });
}
