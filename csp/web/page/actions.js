// A user's actions on a message: reply, quote, forward, or copy a link to it.

import { act } from "./api.js";
import { copy } from "./copy.js";
import { button, byId, h, offer } from "./dom.js";
import { appendText, shortened } from "./text.js";
import { attempt, tell } from "./toast.js";

const LONGEST = 300;

/**
 * @param {import("./room.js").Room} room
 * @param {import("./chat.js").Chat} chat
 * @param {import("./composer.js").Composer} composer
 */
export function startActions(room, chat, composer) {
  const list = byId("log");
  const forward = startForward(room);
  /** Actions by the key that triggers them on the focused message. */
  const acts = {
    r: ["Reply", (message) => composer.reply(message)],
    q: ["Quote", (message) => composer.quote(message)],
    f: ["Forward", forward],
    l: ["Copy link", copyLink],
  };
  // One row of buttons serves all messages: it moves to the message under the pointer or with the focus.
  const bar = h("div", { class: "actions", role: "group", "aria-label": "Message" },
    ...Object.entries(acts).map(([key, [label, run]]) =>
      button(label, () => run(chat.messageOf(bar.closest("li"))), { class: "small", title: `${label} (${key.toUpperCase()})` })));
  const goTo = (message) => {
    if (!message || message.contains(bar) || bar.contains(document.activeElement)) return;
    message.querySelector(".bubble").append(bar);
  };
  list.addEventListener("pointerover", ({ target }) => goTo(target.closest(".message")));
  list.addEventListener("focusin", ({ target }) => goTo(target.closest(".message")));
  list.addEventListener("keydown", (event) => {
    if (!event.target.matches(".message") || event.ctrlKey || event.metaKey || event.altKey) return;
    const [, run] = acts[event.key.toLowerCase()] ?? [];
    if (!run) return;
    event.preventDefault();
    run(chat.messageOf(event.target));
  });
}

/** The URL of a message on this page. */
export const linkOf = (seq) => `${location.origin}${location.pathname}#message-${seq}`;

/** The number of the message in the URL, or null. */
export function linked() {
  const found = /^#message-(\d{1,15})$/.exec(location.hash);
  return found ? Number(found[1]) : null;
}

async function copyLink({ seq }) {
  if (await copy(linkOf(seq))) tell(`Copied the link to #${seq}.`);
  else tell("the browser does not let the page copy", { isError: true });
}

/** A message as text to forward, marked as a quotation. */
export function quoted({ sender, text }) {
  const who = sender === "human" ? "I" : sender;
  return `${who} said:\n${text.split("\n").map((line) => `> ${line}`.trimEnd()).join("\n")}`;
}

/** Prepare the dialog that forwards a message; return a function that opens it. */
function startForward(room) {
  const dialog = byId("forward");
  let forwarded = null;
  byId("forward-cancel").addEventListener("click", () => dialog.close());
  byId("forward-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const note = byId("forward-note").value.trim();
    const to = byId("forward-to").value;
    const content = `${note ? `${note}\n\n` : ""}${quoted(forwarded)}`;
    const sent = await attempt(act("/message", { to, content, thread: room.thread ?? undefined }));
    if (!sent) return;
    dialog.close();
    tell(`Forwarded #${forwarded.seq} to ${to === "all" ? "everybody" : to}.`);
  });
  return (message) => {
    forwarded = message;
    const others = room.agents.filter((agent) => agent.id !== message.sender);
    offer(byId("forward-to"), [...others.map((agent) => [agent.id]), ["all", "everybody"]]);
    byId("forward-note").value = "";
    byId("forward-title").textContent = `Forward #${message.seq} from ${message.sender === "human" ? "you" : message.sender}`;
    byId("forward-text").replaceChildren();
    appendText(byId("forward-text"), shortened(message.text, LONGEST));
    dialog.showModal();
  };
}
