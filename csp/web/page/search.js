// Search all messages.

import { get } from "./api.js";
import { button, byId, h, set, swap } from "./dom.js";
import { appendText, cutBefore, shortened, textElement } from "./text.js";
import { showTab } from "./tabs.js";
import { attempt } from "./toast.js";
import { hueOf, moment, several } from "./words.js";

const MOST = 100;
const AROUND = 120;

/** @param {(seq: number) => void} reveal shows a message in the conversation */
export function startSearch(reveal) {
  const form = byId("search");
  const input = byId("search-text");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (input.value.trim()) find(input.value.trim(), reveal);
    else close();
  });
  input.addEventListener("input", () => input.value || close());
  // If there is no space for the field, a button opens it.
  const open = byId("search-open");
  const unfold = (isOpen) => {
    set(open, { "aria-expanded": String(isOpen) });
    document.body.toggleAttribute("data-searching", isOpen);
    if (isOpen) input.focus();
  };
  open.addEventListener("click", () => unfold(open.getAttribute("aria-expanded") !== "true"));
  input.addEventListener("focus", () => document.body.toggleAttribute("data-searching", true));
  form.addEventListener("focusout", ({ relatedTarget }) => relatedTarget !== open && !form.contains(relatedTarget) && unfold(false));
  byId("results").addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    close();
    input.focus();
  });
}

function close() {
  set(byId("results"), { hidden: true });
  swap(byId("results"));
}

async function find(text, reveal) {
  const page = await attempt(get(`/history?limit=${MOST}&q=${encodeURIComponent(text)}`));
  if (page) list(page, text, reveal, `No messages match "${shortened(text, 60)}".`);
}

/** Show an agent's latest messages, newest first. */
export async function showWordsOf(agent, reveal) {
  const page = await attempt(get(`/history?limit=${MOST}&agent=${encodeURIComponent(agent)}`));
  if (page) list(page, "", reveal, `${agent} has said nothing yet.`);
}

function list(page, text, reveal, none) {
  showTab("chat");
  const items = page.items.filter((item) => item.type !== "vote").reverse();
  const head = h("div", { class: "results-head" },
    h("h2", { tabindex: "-1" }, items.length ? `${several(items.length, "message")}${items.length === MOST ? " (the newest)" : ""}` : none),
    button("Close", close, { class: "link" }));
  swap(byId("results"), head, h("ol", {}, ...items.map((item) => result(item, text, reveal))));
  set(byId("results"), { hidden: false });
  head.firstChild.focus();
}

function result(item, text, reveal) {
  const show = () => {
    close();
    reveal(item.seq);
  };
  return h("li", { vars: { hue: hueOf(item.sender) } },
    h("button", { type: "button", on: { click: show } },
      h("b", { class: "name" }, item.sender), h("time", {}, moment(item.ts)), excerpt(item.text, text)));
}

/** The text around the first search word, with the word highlighted. */
function excerpt(whole, searched) {
  const place = h("span", { class: "excerpt", dir: "auto" });
  const word = searched.toLowerCase().split(/\s+/).find((one) => whole.toLowerCase().includes(one)) ?? "";
  const at = Math.max(0, whole.toLowerCase().indexOf(word));
  appendText(place, whole.slice(cutBefore(whole, Math.max(0, at - AROUND)), at));
  place.append(textElement("mark", {}, whole.slice(at, at + word.length)));
  appendText(place, whole.slice(at + word.length, cutBefore(whole, at + word.length + AROUND)));
  return place;
}
