/**
 * Decides which addresses may become links, whatever the gateway says.
 *
 * Whatever is not plainly a web or mail address stays text, so there is no list of bad schemes.
 */

const LONGEST = 2048;

const WEB = /^https?:\/\/[^/\\@?#]+(?:[/?#]|$)/i;
const MAIL = /^mailto:[^\s@?]+@[^\s@?]+(?:\?|$)/i;
const PROTOCOLS = new Set(["http:", "https:", "mailto:"]);
// A URL parser drops some of these in silence, so the address would not be the one that is read.
const DECEPTIVE = /[\s\\\p{Cc}\p{Cf}\p{Cs}\p{DI}\p{NChar}]/u;

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
