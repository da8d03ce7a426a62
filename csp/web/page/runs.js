/**
 * Pairs the runs of `*`, `_` or `~~` that open with those that close, by the rules of CommonMark.
 *
 * One departure: next to a Chinese, Japanese or Korean letter a run counts as next to a space,
 * since these scripts put none between words.
 */

const LONGEST = 8;
const SPACE = /^\s?$/u;
const PUNCTUATION = /^[\p{P}\p{S}]$/u;
const UNSPACED = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]$/u;

/**
 * @typedef {{type: "run", sign: string, size: number, left: number, opens: boolean, closes: boolean,
 *   opened: Array<{node: object, raw: string}>, closed: Array<{raw: string}>}} Run
 */

/**
 * Reads the run of `size` signs at `at`.
 * @param {string} text
 * @param {number} at
 * @param {number} size
 * @returns {Run | null} null where it can neither open nor close anything
 */
export function readRun(text, at, size) {
  const sign = text[at];
  if (size > LONGEST || (sign === "~" && size !== 2)) return null;
  const { opens, closes } = flanks(sign, characterBefore(text, at), characterAt(text, at + size));
  if (!opens && !closes) return null;
  return { type: "run", sign, size, left: size, opens, closes, opened: [], closed: [] };
}

function flanks(sign, before, after) {
  const spaceBefore = SPACE.test(before);
  const spaceAfter = SPACE.test(after);
  const edgeBefore = spaceBefore || PUNCTUATION.test(before);
  const edgeAfter = spaceAfter || PUNCTUATION.test(after);
  const opens = !spaceAfter && (!edgeAfter || edgeBefore || UNSPACED.test(before));
  const closes = !spaceBefore && (!edgeBefore || edgeAfter || UNSPACED.test(after));
  if (sign !== "_") return { opens, closes };
  return { opens: opens && (!closes || edgeBefore), closes: closes && (!opens || edgeAfter) };
}

function characterAt(text, at) {
  const code = text.codePointAt(at);
  return code === undefined ? "" : String.fromCodePoint(code);
}

function characterBefore(text, at) {
  const low = (text.charCodeAt(at - 1) & 0xfc00) === 0xdc00;
  return at > 1 && low ? characterAt(text, at - 2) : text.slice(Math.max(at - 1, 0), at);
}

/**
 * Pairs the runs from index `first` on; each of them ends with what it opened and closed.
 * @param {Run[]} runs
 * @param {number} first
 */
export function matchRuns(runs, first) {
  const open = [];
  // By kind of closer, how many of the open runs were tried in vain: they are not tried again.
  const tried = new Map();
  for (let index = first; index < runs.length; index += 1) {
    const closer = runs[index];
    while (closer.closes && closer.left > 0) {
      const kind = `${closer.sign}${closer.opens}${closer.size % 3}`;
      const place = findOpener(open, closer, tried.get(kind) ?? 0);
      if (place < 0) {
        tried.set(kind, open.length);
        break;
      }
      pair(open[place], closer);
      open.length = open[place].left > 0 ? place + 1 : place;
      for (const [key, count] of tried) tried.set(key, Math.min(count, open.length));
    }
    if (closer.opens && closer.left > 0) open.push(closer);
  }
}

function findOpener(open, closer, from) {
  for (let place = open.length - 1; place >= from; place -= 1) {
    if (fits(open[place], closer)) return place;
  }
  return -1;
}

// The rule of three keeps `*a**b*` one stretch of emphasis.
function fits(opener, closer) {
  if (opener.sign !== closer.sign) return false;
  const both = opener.closes || closer.opens;
  const sum = opener.size + closer.size;
  return !both || sum % 3 !== 0 || (opener.size % 3 === 0 && closer.size % 3 === 0);
}

function pair(opener, closer) {
  const width = opener.left > 1 && closer.left > 1 ? 2 : 1;
  const raw = opener.sign.repeat(width);
  const type = opener.sign === "~" ? "del" : width === 2 ? "strong" : "em";
  opener.opened.push({ node: { type, inline: [] }, raw });
  closer.closed.push({ raw });
  opener.left -= width;
  closer.left -= width;
}
