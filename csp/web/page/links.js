/**
 * Decides which addresses in an agent's text may become links.
 *
 * Whatever is not plainly a web or mail address stays text, so there is no list of bad schemes.
 */

const LONGEST = 2048;

const WEB = /^https?:\/\/[^/\\@?#]+(?:[/?#]|$)/i;
const MAIL = /^mailto:[^\s@?]+@[^\s@?]+(?:\?|$)/i;
const PROTOCOLS = new Set(["http:", "https:", "mailto:"]);
// A URL parser drops some of these in silence, so the address would not be the one that is read.
const DECEPTIVE = /[\s\\\p{Cc}\p{Cf}\p{Cs}\p{DI}\p{NChar}]/u;

const BARE = /^https?:\/\//i;
const ADDRESS_6 = /\[[0-9a-f:.]+\]/iy;
const BARE_END = /[\s\\<>[\]"`|\p{Cc}\p{Cf}\p{Cs}\p{DI}\u3000-\u303f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]/gu;
const TRAILING = new Set([..."?!.,:;*_~'"]);
const BRACKETS = new Map([[")", "("], ["}", "{"]]);

/**
 * Reads an address that may become a link.
 * @param {string} source
 * @returns {URL | null} null for whatever has to stay text
 */
export function safeUrl(source) {
  if (source.length > LONGEST || DECEPTIVE.test(source)) return null;
  if (!WEB.test(source) && !MAIL.test(source)) return null;
  try {
    const url = new URL(source);
    return PROTOCOLS.has(url.protocol) ? url : null;
  } catch {
    return null;
  }
}

/**
 * Names where a link leads, unless its label says so itself.
 * @param {URL} url
 * @param {string} source the address as it was written
 * @param {string} label
 * @returns {string | null} the host in ASCII, or the address of a mail
 */
export function hostBehind(url, source, label) {
  if (url.protocol === "mailto:") return label === url.pathname || label === source ? null : url.pathname;
  const plain = `${url.protocol}//${url.host}`;
  return label === source && source.toLowerCase().startsWith(plain) ? null : url.host;
}

/**
 * Finds the end of the bare address that begins at `start`.
 * @param {string} text
 * @param {number} start
 * @returns {{end: number, stop: number} | null} where the address ends, and where its characters do
 */
export function bareUrl(text, start) {
  const scheme = BARE.exec(text.slice(start, start + 8));
  if (!scheme) return null;
  ADDRESS_6.lastIndex = start + scheme[0].length;
  BARE_END.lastIndex = ADDRESS_6.test(text) ? ADDRESS_6.lastIndex : start;
  const hit = BARE_END.exec(text);
  const stop = hit ? hit.index : text.length;
  return { end: trimmedEnd(text, start, stop), stop };
}

// Punctuation after an address belongs to the sentence; so does a bracket that it did not open.
function trimmedEnd(text, start, stop) {
  const surplus = new Map();
  for (let at = start; at < stop; at += 1) {
    const character = text[at];
    for (const [close, open] of BRACKETS) {
      if (character === close) surplus.set(close, (surplus.get(close) ?? 0) + 1);
      if (character === open) surplus.set(close, (surplus.get(close) ?? 0) - 1);
    }
  }
  let end = stop;
  for (; end > start; end -= 1) {
    const last = text[end - 1];
    const extra = surplus.get(last) ?? 0;
    if (!TRAILING.has(last) && extra <= 0) break;
    if (extra > 0) surplus.set(last, extra - 1);
  }
  return end;
}
