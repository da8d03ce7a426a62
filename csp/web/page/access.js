// Log this page in and out.
//
// The token is kept in sessionStorage, which belongs to this scheme, host, port and tab. A cookie would be
// sent to every server on this machine, regardless of its port.

/** The path of the room: a hub serves many below different paths, each with its own token. */
const BASE = location.pathname.replace(/\/[^/]*$/, "");
const KEY = BASE ? `csp-token ${BASE}` : "csp-token";
const LINK = /^#link=([A-Za-z0-9_-]{16,128})$/;

/** Return the path of a route of this page's room. */
export function pathOf(route) {
  return BASE + route;
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
  const response = await fetch(pathOf("/page/enter"), { method: "POST", body: JSON.stringify({ code: found[1] }) });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) return answer.error ?? `the gateway answered ${response.status}`;
  sessionStorage.setItem(KEY, answer.token);
  return "";
}
