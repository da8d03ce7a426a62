// Short notifications at the bottom of the page.

import { button, byId, h } from "./dom.js";
import { textElement } from "./text.js";

const STAYS_MS = 8000;

/**
 * Show a notification; an error stays until it is closed, one with `isLost` until the gateway is back, and one
 * with `isOfLine` until the next line is sent.
 * @param {string} text
 * @param {{isError?: boolean, hint?: string, isLost?: boolean, isOfLine?: boolean}} [options]
 */
export function tell(text, { isError = false, hint = "", isLost = false, isOfLine = false } = {}) {
  const place = byId("toasts");
  if (isLost) clearLost();
  const toast = h("div", { class: "toast", role: isError ? "alert" : "status", data: { kind: isError ? "error" : "note", ...(isLost && { lost: "true" }), ...(isOfLine && { line: "true" }) } },
    textElement("p", {}, hint ? `${text} (${hint})` : text),
    button("×", () => toast.remove(), { class: "icon", "aria-label": "Close" }));
  place.append(toast);
  while (place.children.length > 3) place.firstChild.remove();
  if (!isError) setTimeout(() => toast.remove(), STAYS_MS);
}

/** Remove notifications about a gateway that did not respond. */
export const clearLost = () => clear("[data-lost]");

/** Remove notifications about the last line. */
export const clearLine = () => clear("[data-line]");

function clear(which) {
  for (const toast of byId("toasts").querySelectorAll(which)) toast.remove();
}

/**
 * Wait for a call; show its error if it fails.
 * @template T
 * @param {Promise<T>} promise
 * @returns {Promise<T | null>} null if it failed
 */
export async function attempt(promise) {
  try {
    return await promise;
  } catch (error) {
    tell(error.message, { isError: true, hint: error.hint, isLost: error.status === 0 });
    return null;
  }
}
