// Questions to the person that need an answer before something is done.

import { byId, set, setText } from "./dom.js";

/** The question before this one: each is answered before the next is asked. */
let last = Promise.resolve(false);

/**
 * Ask a yes-or-no question.
 * @param {string} question
 * @param {string} yes the label of the button that does it
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
 * Say at a field what is wrong with it, and go there; without words it is right.
 * @param {string} id the field; its message has the id with `-error`
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
