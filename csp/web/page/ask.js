// Questions that the user must answer before an action is performed.

import { byId, set, setText } from "./dom.js";

/** The previous question, because each is answered before the next is asked. */
let last = Promise.resolve(false);

/**
 * Ask a yes-or-no question.
 * @param {string} question
 * @param {string} yes the label of the button that confirms
 * @param {string} [no]
 * @returns {Promise<boolean>}
 */
export function ask(question, yes, no = "Cancel") {
  last = last.then(() => show(question, yes, no));
  return last;
}

function show(question, yes, no) {
  const dialog = byId("ask");
  setText(byId("ask-text"), question);
  setText(byId("ask-yes"), yes);
  setText(byId("ask-no"), no);
  dialog.returnValue = "";
  return new Promise((answer) => {
    dialog.addEventListener("close", () => answer(dialog.returnValue === "yes"), { once: true });
    dialog.showModal();
  });
}

/**
 * Show an error at a field and focus it; empty text clears the error.
 * @param {string} id the field's id; its message has the same id with `-error`
 * @param {string} words
 */
export function setProblem(id, words) {
  const [field, message] = [byId(id), byId(`${id}-error`)];
  setText(message, words);
  set(message, { hidden: !words });
  set(field, { "aria-invalid": words ? "true" : null, "aria-describedby": words ? message.id : null });
  if (!words) return;
  const place = field.matches("input, select, textarea") ? field : field.querySelector("input");
  place?.focus();
}
