/**
 * Shows characters in an agent's text that a browser would hide.
 *
 * A reader must see exactly what the other agents received: a control, a bidi override or a character
 * without a shape is shown as a mark, and it has an effect only where a script or an emoji needs it.
 */

import { h } from "./dom.js";

const MARKS_IN_A_ROW = 6;
const LONGEST_STEP_BACK = 32;
const LONGEST_TITLE = 200;
const LONGEST_WORD = 64;

// All repetitions are bounded, because a long run must not fill the engine's backtracking stack.
const ODD =
  /(?:(?!\p{DI})[\p{Mn}\p{Me}]){7}|[\0-\x08\x0B-\x1F\x7F-\x9F\p{DI}\p{Cs}\p{NChar}\u2028\u2029\u2800\uFFF9-\uFFFB\u{13430}-\u{1343F}]/gu;
const COMBINING = /^[\p{Mn}\p{Me}]$/u;
const PICTURE = /^[\p{Extended_Pictographic}\p{Emoji_Modifier}\uFE0F]$/u;
const EMOJI = /^[\p{Emoji}\p{Extended_Pictographic}]$/u;
const IDEOGRAPH = /^\p{Script=Han}$/u;
const HAS_VARIANTS = /^[\p{Script=Han}\p{Script=Myanmar}\p{Sm}]$/u;
const MONGOLIAN = /^\p{Script=Mongolian}$/u;
const JOINING =
  /^[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Nko}\p{Script=Mongolian}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Tibetan}]$/u;

const C0 = (
  "NULL,START OF HEADING,START OF TEXT,END OF TEXT,END OF TRANSMISSION,ENQUIRY,ACKNOWLEDGE,BELL," +
  "BACKSPACE,TAB,LINE FEED,LINE TABULATION,FORM FEED,CARRIAGE RETURN,SHIFT OUT,SHIFT IN," +
  "DATA LINK ESCAPE,DEVICE CONTROL ONE,DEVICE CONTROL TWO,DEVICE CONTROL THREE,DEVICE CONTROL FOUR," +
  "NEGATIVE ACKNOWLEDGE,SYNCHRONOUS IDLE,END OF TRANSMISSION BLOCK,CANCEL,END OF MEDIUM,SUBSTITUTE," +
  "ESCAPE,FILE SEPARATOR,GROUP SEPARATOR,RECORD SEPARATOR,UNIT SEPARATOR"
).split(",");

/** The names of ranges of consecutive characters, by the first character. */
const NAMED = [
  [0x00, C0],
  [0x7f, ["DELETE"]],
  [0x9b, ["CONTROL SEQUENCE INTRODUCER"]],
  [0xad, ["SOFT HYPHEN"]],
  [0x34f, ["COMBINING GRAPHEME JOINER"]],
  [0x61c, ["ARABIC LETTER MARK"]],
  [0x115f, ["HANGUL CHOSEONG FILLER", "HANGUL JUNGSEONG FILLER"]],
  [0x180e, ["MONGOLIAN VOWEL SEPARATOR"]],
  [0x200b, ["ZERO WIDTH SPACE", "ZERO WIDTH NON-JOINER", "ZERO WIDTH JOINER", "LEFT-TO-RIGHT MARK", "RIGHT-TO-LEFT MARK"]],
  [0x2028, ["LINE SEPARATOR", "PARAGRAPH SEPARATOR", "LEFT-TO-RIGHT EMBEDDING", "RIGHT-TO-LEFT EMBEDDING"]],
  [0x202c, ["POP DIRECTIONAL FORMATTING", "LEFT-TO-RIGHT OVERRIDE", "RIGHT-TO-LEFT OVERRIDE"]],
  [0x2060, ["WORD JOINER", "FUNCTION APPLICATION", "INVISIBLE TIMES", "INVISIBLE SEPARATOR", "INVISIBLE PLUS"]],
  [0x2066, ["LEFT-TO-RIGHT ISOLATE", "RIGHT-TO-LEFT ISOLATE", "FIRST STRONG ISOLATE", "POP DIRECTIONAL ISOLATE"]],
  [0x2800, ["BRAILLE PATTERN BLANK"]],
  [0x3164, ["HANGUL FILLER"]],
  [0xfeff, ["ZERO WIDTH NO-BREAK SPACE"]],
  [0xffa0, ["HALFWIDTH HANGUL FILLER"]],
  [0xfff9, ["ANCHOR", "SEPARATOR", "TERMINATOR"].map((part) => `INTERLINEAR ANNOTATION ${part}`)],
];
const NAMES = new Map(NAMED.flatMap(([first, names]) => names.map((name, at) => [first + at, name])));

// The first row that contains the code point provides its name.
const KINDS = [
  [0x80, 0x9f, "control character"],
  [0xd800, 0xdfff, "half of a surrogate pair"],
  [0xfdd0, 0xfdef, "noncharacter"],
  [0xfe00, 0xfe0f, "variation selector"],
  [0xe0100, 0xe01ef, "variation selector"],
  [0xe0000, 0xe007f, "tag character"],
  [0, 0x10ffff, "invisible character"],
];

/**
 * Neighbouring characters that are shown as one mark.
 * @typedef {{mark: string, title: string}} Mark
 */

/**
 * Splits a text into unchanged parts and parts that need a mark, in order.
 * @param {string} text
 * @returns {Array<string | Mark>}
 */
export function pieces(text) {
  const source = text.includes("\r\n") ? text.replaceAll("\r\n", "\n") : text;
  const found = [];
  let from = 0;
  ODD.lastIndex = 0;
  for (let hit = ODD.exec(source); hit; hit = ODD.exec(source)) {
    const odd = readOdd(source, hit);
    if (odd.start < odd.end) {
      if (from < odd.start) found.push(source.slice(from, odd.start));
      if (from < odd.start || !join(found.at(-1), odd.mark)) found.push(odd.mark);
      from = odd.end;
    }
    ODD.lastIndex = odd.end;
  }
  if (from < source.length) found.push(source.slice(from));
  return found;
}

/**
 * Returns a text with its marks in angle brackets, for places that cannot contain elements.
 * @param {string} text
 * @returns {string}
 */
export function visible(text) {
  return pieces(text)
    .map((piece) => (typeof piece === "string" ? piece : `<${piece.mark}>`))
    .join("");
}

/**
 * Appends a text as text nodes, with an element of class `odd` for each mark.
 * @param {Node} parent
 * @param {string} text
 */
export function appendText(parent, text) {
  for (const piece of pieces(text)) {
    if (typeof piece === "string") appendWords(parent, piece);
    else parent.append(h("span", { class: "odd", title: piece.title }, piece.mark));
  }
}

/** Appends a text to an element, after its existing content. */
export function textElement(tag, props, text, ...before) {
  const element = h(tag, props, ...before);
  appendText(element, text);
  return element;
}

/**
 * Appends a text with break opportunities in words that are too long for a line. Without them, the
 * browser shapes the rest of such a word again for every line: 20,000 letters take many seconds.
 */
function appendWords(parent, text) {
  let from = 0;
  let word = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (text.charCodeAt(at) <= 0x20) word = at + 1;
    else if (at - word >= LONGEST_WORD) {
      word = Math.max(cutBefore(text, at), from + 1);
      parent.append(text.slice(from, word), document.createElement("wbr"));
      from = word;
    }
  }
  parent.append(text.slice(from));
}

/**
 * Returns the position between `from` and `to` up to which a text needs at most `most` marks.
 * @param {string} text
 * @param {number} from
 * @param {number} to
 * @param {number} most
 * @returns {number}
 */
export function endOfMarks(text, from, to, most) {
  ODD.lastIndex = from;
  for (let count = 0; count <= most; count += 1) {
    const hit = ODD.exec(text);
    if (!hit || hit.index >= to) return to;
    if (count === most) return hit.index;
  }
  return to;
}

/**
 * Returns the last position up to `at` where a cut does not split a character as perceived by a reader.
 * @param {string} text
 * @param {number} at
 * @returns {number}
 */
export function cutBefore(text, at) {
  if (at >= text.length) return text.length;
  for (let end = at; end > 0 && end > at - LONGEST_STEP_BACK; end -= 1) {
    if (!splitsPair(text, end) && !isJoined(text, end)) return end;
  }
  return splitsPair(text, at) ? at - 1 : at;
}

/**
 * Truncates a text that is too long, between two characters.
 * @param {string} text
 * @param {number} most
 * @returns {string}
 */
export function shortened(text, most) {
  return text.length > most ? `${text.slice(0, cutBefore(text, most))}…` : text;
}

// Neighbours share one mark, because each mark costs an element; but a long mark is slow to lay out.
function join(last, next) {
  if (!last || last.title.length > LONGEST_TITLE) return false;
  last.mark += ` ${next.mark}`;
  last.title += `, ${next.title}`;
  return true;
}

function readOdd(source, hit) {
  const start = hit.index;
  const code = source.codePointAt(start);
  const size = code > 0xffff ? 2 : 1;
  if (hit[0].length > size) return readPile(source, start);
  let end = start + size;
  // An empty range after the character: there is nothing to mark, and the search continues.
  if (isNeeded(source, start, code, size)) return { start: end, end, mark: null };
  while (source.codePointAt(end) === code) end += size;
  return { start, end, mark: markOf(code, (end - start) / size) };
}

function readPile(source, start) {
  let kept = start;
  let end = start;
  let count = 0;
  for (; end < source.length; count += 1) {
    const character = String.fromCodePoint(source.codePointAt(end));
    if (!COMBINING.test(character)) break;
    end += character.length;
    if (count < MARKS_IN_A_ROW) kept = end;
  }
  const cut = count - MARKS_IN_A_ROW;
  return { start: kept, end, mark: { mark: `+${cut} marks`, title: `${cut} stacked combining marks cut` } };
}

function markOf(code, count) {
  const point = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  const name = NAMES.get(code) ?? kindOf(code);
  const sign = code < 0x20 ? String.fromCodePoint(0x2400 + code) : code === 0x7f ? "\u2421" : point;
  return { mark: count > 1 ? `${sign}\u00d7${count}` : sign, title: `${point} ${name}` };
}

function kindOf(code) {
  if (code > 0xe0020 && code < 0xe007f) return `TAG ${String.fromCodePoint(code - 0xe0000)}`;
  if ((code & 0xfffe) === 0xfffe) return "noncharacter";
  return KINDS.find(([first, last]) => first <= code && code <= last)[2];
}

function isNeeded(source, at, code, size) {
  const before = characterBefore(source, at);
  if (code === 0x200c || code === 0x200d) {
    const after = String.fromCodePoint(source.codePointAt(at + size) ?? 0);
    const inEmoji = code === 0x200d && PICTURE.test(before) && EMOJI.test(after);
    return inEmoji || (JOINING.test(before) && JOINING.test(after));
  }
  if (code === 0xfe0e || code === 0xfe0f) return EMOJI.test(before);
  if (code >= 0xfe00 && code <= 0xfe0d) return HAS_VARIANTS.test(before);
  if (code >= 0xe0100 && code <= 0xe01ef) return IDEOGRAPH.test(before);
  return code >= 0x180b && code <= 0x180f && code !== 0x180e && MONGOLIAN.test(before);
}

function characterBefore(source, at) {
  if (at === 0) return "";
  return source.slice(splitsPair(source, at - 1) ? at - 2 : at - 1, at);
}

function splitsPair(text, at) {
  if (at < 1 || at >= text.length) return false;
  return (text.charCodeAt(at) & 0xfc00) === 0xdc00 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800;
}

function isJoined(text, at) {
  const next = String.fromCodePoint(text.codePointAt(at));
  if (next === "\n") return text[at - 1] === "\r";
  return COMBINING.test(next) || next === "\u200d" || text[at - 1] === "\u200d";
}
