// The tabs that select the visible part of the room if there is no space for all parts.

import { byId, set } from "./dom.js";
import { Topic } from "./topic.js";

export const tabChanged = new Topic();

/** @param {"chat" | "screens" | "board" | "agents" | "session"} name */
export function showTab(name) {
  document.body.dataset.tab = name;
  for (const tab of byId("tabs").querySelectorAll("button")) {
    set(tab, { "aria-current": tab.dataset.tab === name ? "page" : null });
  }
  tabChanged.tell(name);
}

export function startTabs() {
  for (const tab of byId("tabs").querySelectorAll("button")) {
    tab.addEventListener("click", () => showTab(tab.dataset.tab));
  }
  showTab("chat");
}
