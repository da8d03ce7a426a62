// Keys that work everywhere on the page.

import { stop } from "./acts.js";
import { byId, set } from "./dom.js";

const TWICE_MS = 800;

/** @param {import("./room.js").Room} room */
export function startKeys(room) {
  byId("allstop").addEventListener("click", () => stop(room));
  document.addEventListener("click", ({ target }) => {
    if (!byId("menu").contains(target) || target.closest(".menu-body button")) closeMenu();
  });
  let escapedAt = -Infinity;
  document.addEventListener("keydown", (event) => {
    if (event.key === "k" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      document.body.toggleAttribute("data-searching", true);
      byId("search-text").focus();
    }
    // An Esc that closes a dialog or the menu does not count as the first of two.
    if (event.key !== "Escape" || event.repeat || document.querySelector("dialog[open]") || closeMenu()) return;
    const isSecond = event.timeStamp - escapedAt < TWICE_MS;
    escapedAt = isSecond ? -Infinity : event.timeStamp;
    hint(!isSecond && room.running.length > 0);
    if (isSecond) stop(room);
  });
}

/** Close the menu; return whether it was open. */
function closeMenu() {
  const menu = byId("menu");
  const wasOpen = menu.open;
  if (menu.contains(document.activeElement)) menu.querySelector("summary").focus();
  menu.open = false;
  return wasOpen;
}

let hiding = 0;

function hint(isShown) {
  clearTimeout(hiding);
  set(byId("escape-hint"), { hidden: !isShown });
  if (isShown) hiding = setTimeout(() => hint(false), TWICE_MS * 2);
}
