// How this page got in, and how it leaves.
//
// The token lies in sessionStorage: it belongs to this scheme, host, port and tab. A cookie would be
// sent to every server on this machine, whatever its port.

const KEY = "csp-token";
const LINK = /^#link=([A-Za-z0-9_-]{16,128})$/;

/** Return the token of this tab, or null. */
export function token() {
  return sessionStorage.getItem(KEY);
}

/** Forget the token of this tab. */
export function forget() {
  sessionStorage.removeItem(KEY);
}

/**
 * Use up the one-time link in the address, if there is one, and take it out of the address bar.
 * @returns {Promise<string>} why it did not work, or nothing
 */
export async function enter() {
  const found = LINK.exec(location.hash);
  if (location.hash.startsWith("#link=")) history.replaceState(null, "", location.pathname);
  if (!found) return "";
  const response = await fetch("/page/enter", { method: "POST", body: JSON.stringify({ code: found[1] }) });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) return answer.error ?? `the gateway answered ${response.status}`;
  sessionStorage.setItem(KEY, answer.token);
  return "";
}
