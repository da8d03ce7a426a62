// Short words to the person at the bottom of the page.

import { button, byId, h } from "./dom.js";
import { textElement } from "./text.js";

const STAYS_MS = 8000;

/** Tell something; an error stays until it is closed. */
export function tell(text, { isError = false, hint = "" } = {}) {
  const place = byId("toasts");
  const toast = h("div", { class: "toast", role: isError ? "alert" : "status", data: { kind: isError ? "error" : "note" } },
    textElement("p", {}, hint ? `${text} (${hint})` : text),
    button("×", () => toast.remove(), { class: "icon", "aria-label": "Close" }));
  place.append(toast);
  while (place.children.length > 3) place.firstChild.remove();
  if (!isError) setTimeout(() => toast.remove(), STAYS_MS);
}

/**
 * Wait for a call; tell what went wrong with it.
 * @template T
 * @param {Promise<T>} promise
 * @returns {Promise<T | null>} null if it failed
 */
export async function attempt(promise) {
  try {
    return await promise;
  } catch (error) {
    tell(error.message, { isError: true, hint: error.hint });
    return null;
  }
}
