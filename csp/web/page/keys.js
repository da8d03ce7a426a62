// Keys that work everywhere on the page.

import { stop } from "./acts.js";
import { byId, set } from "./dom.js";

const TWICE_MS = 800;

/** @param {import("./room.js").Room} room */
export function startKeys(room) {
  byId("allstop").addEventListener("click", () => stop(room));
  let escapedAt = -Infinity;
  document.addEventListener("keydown", (event) => {
    if (event.key === "k" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      byId("search-text").focus();
    }
    // The first Esc may close a dialog or a menu; then it is no half of the two.
    if (event.key !== "Escape" || event.repeat || document.querySelector("dialog[open]")) return;
    const isSecond = event.timeStamp - escapedAt < TWICE_MS;
    escapedAt = isSecond ? -Infinity : event.timeStamp;
    hint(!isSecond && room.running.length > 0);
    if (isSecond) stop(room);
  });
}

let hiding = 0;

function hint(isShown) {
  clearTimeout(hiding);
  set(byId("escape-hint"), { hidden: !isShown });
  if (isShown) hiding = setTimeout(() => hint(false), TWICE_MS * 2);
}
