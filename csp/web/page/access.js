// Log this page in and out.
//
// The token is kept in sessionStorage, which belongs to this scheme, host, port and tab. A cookie would be
// sent to every server on this machine, regardless of its port.

/** The path of the room: a hub serves many below different paths, each with its own token. */
const BASE = location.pathname.replace(/\/[^/]*$/, "");
const KEY = BASE ? `csp-token ${BASE}` : "csp-token";
const LINK = /^#link=([A-Za-z0-9_-]{16,128})$/;

/** The gateways of the room; this page is from the first one, and uses the next one if that is lost. */
const GATEWAYS = ["", ...(document.querySelector('meta[name="csp-gateways"]')?.content ?? "").split(" ").filter(Boolean)];
let current = 0;
let leaving = new AbortController();

/** The number of gateways that this page may use. */
export const gatewayCount = GATEWAYS.length;

/** Return the address of a route of this page's room, at the gateway that is used now. */
export function addressOf(route) {
  return GATEWAYS[current] + BASE + route;
}

/** A signal that ends requests to a gateway that is given up. */
export function untilLeft() {
  return leaving.signal;
}

/** Use the next gateway. */
export function moveOn() {
  if (gatewayCount === 1) return;
  current = (current + 1) % gatewayCount;
  leaving.abort();
  leaving = new AbortController();
}

/** Return this tab's token, or null. */
export function token() {
  return sessionStorage.getItem(KEY);
}

/** Delete this tab's token. */
export function forget() {
  sessionStorage.removeItem(KEY);
}

/**
 * Redeem the one-time link in the URL, if there is one, and remove it from the address bar.
 * @returns {Promise<string>} the reason for a failure, or an empty string
 */
export async function enter() {
  const found = LINK.exec(location.hash);
  if (location.hash.startsWith("#link=")) history.replaceState(null, "", location.pathname);
  if (!found) return "";
  const response = await fetch(addressOf("/page/enter"), { method: "POST", body: JSON.stringify({ code: found[1] }) });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) return answer.error ?? `the gateway answered ${response.status}`;
  sessionStorage.setItem(KEY, answer.token);
  return "";
}
