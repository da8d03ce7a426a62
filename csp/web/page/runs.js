/**
 * Pairs the runs of `*`, `_` or `~~` that open with those that close, by the rules of CommonMark.
 *
 * One departure: next to a Chinese, Japanese or Korean letter a run counts as next to a space,
 * since these scripts put none between words.
 */

const LONGEST = 8;
const SIGNS = "*_~";
const KINDS_OF_CLOSERS = SIGNS.length * 6;
const SPACE = 1;
const PUNCTUATION = 2;
const UNSPACED = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]$/u;
const ASCII_KINDS = Uint8Array.from({ length: 128 }, (_, code) => slowKindOf(code));

/**
 * @typedef {{type: "run", sign: string, size: number, left: number, opens: boolean, closes: boolean,
 *   opened: Array<{node: object, raw: string}> | null, closed: Array<{raw: string}> | null}} Run
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
  const { opens, closes } = flanks(sign, codeBefore(text, at), text.codePointAt(at + size));
  if (!opens && !closes) return null;
  return { type: "run", sign, size, left: size, opens, closes, opened: null, closed: null };
}

function flanks(sign, before, after) {
  const kindBefore = kindOf(before);
  const kindAfter = kindOf(after);
  const opens = kindAfter !== SPACE && (kindAfter === 0 || kindBefore !== 0 || isUnspaced(before));
  const closes = kindBefore !== SPACE && (kindBefore === 0 || kindAfter !== 0 || isUnspaced(after));
  if (sign !== "_") return { opens, closes };
  return { opens: opens && (!closes || kindBefore !== 0), closes: closes && (!opens || kindAfter !== 0) };
}

function codeBefore(text, at) {
  if (at === 0) return undefined;
  const isLow = (text.charCodeAt(at - 1) & 0xfc00) === 0xdc00;
  return text.codePointAt(isLow && at > 1 ? at - 2 : at - 1);
}

// The ends of a text count as space.
function kindOf(code) {
  if (code === undefined) return SPACE;
  return code < ASCII_KINDS.length ? ASCII_KINDS[code] : slowKindOf(code);
}

function slowKindOf(code) {
  const character = String.fromCodePoint(code);
  if (/\s/u.test(character)) return SPACE;
  return /[\p{P}\p{S}]/u.test(character) ? PUNCTUATION : 0;
}

function isUnspaced(code) {
  return code > 0x1000 && UNSPACED.test(String.fromCodePoint(code));
}

/**
 * Pairs the runs from index `first` on; each of them ends with what it opened and closed.
 * @param {Run[]} runs
 * @param {number} first
 */
export function matchRuns(runs, first) {
  if (first === runs.length) return;
  const open = [];
  // By kind of closer, how many of the open runs were tried in vain: they are not tried again.
  const tried = new Array(KINDS_OF_CLOSERS).fill(0);
  for (let index = first; index < runs.length; index += 1) {
    const run = runs[index];
    while (run.closes && run.left > 0) {
      const kind = SIGNS.indexOf(run.sign) * 6 + (run.size % 3) * 2 + Number(run.opens);
      const place = findOpener(open, run, tried[kind]);
      if (place < 0) {
        tried[kind] = open.length;
        break;
      }
      pair(open[place], run);
      open.length = open[place].left > 0 ? place + 1 : place;
      for (let other = 0; other < tried.length; other += 1) tried[other] = Math.min(tried[other], open.length);
    }
    if (run.opens && run.left > 0) open.push(run);
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
  (opener.opened ??= []).push({ node: { type, inline: [] }, raw });
  (closer.closed ??= []).push({ raw });
  opener.left -= width;
  closer.left -= width;
}
