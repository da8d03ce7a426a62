/**
 * Creates buttons that copy a text exactly as written.
 */

import { button } from "./dom.js";

const SAID_FOR_MS = 2000;

/**
 * Creates a button that copies the text returned by `source`.
 * @param {() => string} source
 * @returns {HTMLButtonElement}
 */
export function makeCopyButton(source) {
  const made = button("Copy", async () => {
    made.textContent = (await copy(source())) ? "Copied" : "Not copied";
    setTimeout(() => (made.textContent = "Copy"), SAID_FOR_MS);
  }, { class: "copy" });
  return made;
}

/** Copies a text; returns whether it succeeded. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyByEvent(text);
  }
}

// Without TLS, a page on another host has no clipboard object; the older method still works there.
function copyByEvent(text) {
  let done = false;
  const put = (event) => {
    event.clipboardData.setData("text/plain", text);
    event.preventDefault();
    done = true;
  };
  document.addEventListener("copy", put, { once: true });
  document.execCommand("copy");
  document.removeEventListener("copy", put);
  return done;
}
