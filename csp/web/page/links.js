/**
 * Decides which URLs may become links, regardless of the gateway.
 *
 * Anything but a plain web or mail address stays text, so no list of bad schemes is needed.
 */

const LONGEST = 2048;

const WEB = /^https?:\/\/[^/\\@?#]+(?:[/?#]|$)/i;
const MAIL = /^mailto:[^\s@?]+@[^\s@?]+(?:\?|$)/i;
const PROTOCOLS = new Set(["http:", "https:", "mailto:"]);
// A URL parser silently drops some of these, so the URL would differ from the one that is displayed.
const DECEPTIVE = /[\s\\\p{Cc}\p{Cf}\p{Cs}\p{DI}\p{NChar}]/u;

/**
 * Parses a URL that may become a link.
 * @param {string} source
 * @returns {URL | null} null for anything that must stay text
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
 * Returns the target of a link, unless its label already shows it.
 * @param {URL} url
 * @param {string} source the URL as written
 * @param {string} label
 * @returns {string | null} the host in ASCII, or a mail address
 */
export function hostBehind(url, source, label) {
  if (url.protocol === "mailto:") return label === url.pathname || label === source ? null : url.pathname;
  const plain = `${url.protocol}//${url.host}`;
  return label === source && source.toLowerCase().startsWith(plain) ? null : url.host;
}
