// The field in which the user writes messages.

import { act, newId } from "./api.js";
import { quoted } from "./actions.js";
import { ask } from "./ask.js";
import { catalogue } from "./catalogue.js";
import { runCommand } from "./commands.js";
import { Completion } from "./completion.js";
import { button, byId, h, offer, set, swap } from "./dom.js";
import { shortened } from "./text.js";
import { clearLine, tell } from "./toast.js";
import { several } from "./words.js";

const MAX_LINES_PX = 240;
const EXCERPT = 60;
const AGAIN_MS = 3000;

export class Composer {
  #room;
  #text = byId("composer-text");
  #target = byId("composer-target");
  #completion;
  /** The message being replied to, or null. */
  #answered = null;
  /** Lines that the gateway has not received, each with its id; they are sent once when it is back. */
  #unsent = [];
  #isSending = false;

  /** @param {import("./room.js").Room} room */
  constructor(room) {
    this.#room = room;
    this.#completion = new Completion(this.#text, byId("completion"), () => this.#words());
    room.agentsChanged.on(() => this.#offerTargets());
    room.statusChanged.on(() => room.status === "live" && this.#sendUnsent());
    byId("composer").addEventListener("submit", (event) => this.#submit(event));
    this.#text.addEventListener("keydown", (event) => this.#key(event));
    this.#text.addEventListener("input", () => this.#grow());
    this.#offerTargets();
    const isNarrow = matchMedia("(max-width: 720px)");
    const hint = this.#text.placeholder;
    const offerHint = () => { this.#text.placeholder = isNarrow.matches ? "Message" : hint; };
    isNarrow.addEventListener("change", offerHint);
    offerHint();
  }

  /** Focus the composer with a recipient filled in. */
  writeTo(to) {
    this.#aim(to);
    this.#text.focus();
  }

  /** Start a reply to a message. */
  reply(message) {
    this.#answered = message;
    this.writeTo(message.sender === "human" ? message.target : message.sender);
    this.#drawNote();
  }

  /** Insert a message as a quotation. */
  quote(message) {
    const before = this.#text.value.trimEnd();
    this.#put(`${before ? `${before}\n\n` : ""}${quoted(message)}\n\n`);
    this.#text.focus();
    this.#text.setSelectionRange(this.#text.value.length, this.#text.value.length);
  }

  /** Send text without a recipient to `to` from now on; several names are separated by commas. */
  #aim(to) {
    const isOffered = () => [...this.#target.options].some(({ value }) => value === to);
    if (to.includes(",") && !isOffered()) {
      this.#target.append(h("option", { value: to }, to.replaceAll(",", ", ")));
    }
    if (isOffered()) this.#target.value = to;
  }

  #offerTargets() {
    const aimed = this.#target.value;
    const lists = aimed.includes(",") ? [aimed] : [];
    const names = [...this.#room.agents.map((agent) => agent.id), ...Object.keys(catalogue.groups), ...lists];
    offer(this.#target, [["all", "everybody"], ...names.map((name) => [name, name.replaceAll(",", ", ")])]);
  }

  #words() {
    const names = ["all", ...this.#room.agents.map((agent) => agent.id)];
    return {
      "@": names.map((id) => ({ word: `@${id} `, about: this.#room.agent(id)?.state ?? "everybody" })),
      "!": names.map((id) => ({ word: `!${id} `, about: "urgent: interrupts it" })),
      "/": catalogue.commands.map(({ name, form, help }) => ({ word: `/${name} `, about: `${form.slice(name.length + 2)} ${help}`.trim() })),
      "{": this.#room.agents.map(({ id }) => ({ word: `{${id}.last}`, about: "what it said last" })),
    };
  }

  #key(event) {
    if (this.#completion.takes(event) || event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      byId("composer").requestSubmit();
    }
  }

  #grow() {
    this.#text.style.height = "auto";
    // The placeholder in an empty field must not make it grow.
    if (this.#text.value) this.#text.style.height = `${Math.min(this.#text.scrollHeight + 2, MAX_LINES_PX)}px`;
  }

  #put(text) {
    this.#text.value = text;
    this.#completion.close();
    this.#grow();
  }

  // --- sending -----------------------------------------------------------------------------------

  async #submit(event) {
    event.preventDefault();
    const line = this.#text.value;
    if (!line.trim()) return;
    const body = { line, to: this.#target.value, thread: this.#room.thread ?? undefined, replyTo: this.#answered?.id };
    this.#put("");
    this.#answer(null);
    clearLine();
    // Earlier lines are sent first.
    const isWaiting = this.#unsent.length || this.#room.status === "lost";
    await (isWaiting ? this.#keep({ ...body, id: newId() }) : this.#send({ ...body, id: newId() }));
  }

  async #send(body) {
    set(byId("composer"), { "aria-busy": "true" });
    const isDone = await this.#trySend(body);
    set(byId("composer"), { "aria-busy": "false" });
    // Restore a line that could not be sent, unless the user has started a new one.
    if (!isDone && !this.#text.value) this.#put(body.line);
  }

  /** Let the gateway execute a line; return whether it was executed or queued until the gateway is back. */
  async #trySend(body) {
    // The line may be an Allstop, and unlike a request, the WebSocket does not need a free connection.
    this.#room.hurry({ op: "line", ...body });
    let done;
    try {
      done = await act("/line", body);
    } catch (error) {
      if (error.status === 0) return this.#keep(body);
      tell(error.message, { isError: true, hint: error.hint, isOfLine: true });
      return false;
    }
    return this.#finish(done, body);
  }

  /** Handle the gateway's response; return whether the line is finished. */
  async #finish(done, body) {
    if (done.to) this.#aim(done.to);
    if (done.kind === "message" && !done.recipients?.length) tell("No agents yet; nobody received this.");
    if (done.kind === "command") return runCommand(done.name, done.rest ?? "", this.#room);
    if (done.kind === "confirm" || done.kind === "ask_replace") {
      const again = { ...body, confirmed: true, id: newId() };
      return (await ask(done.question, "Yes", "No")) && this.#trySend(again);
    }
    if (done.kind === "ask_topic") {
      tell(done.question, { hint: `/mode ${done.name} "topic"` });
      return false;
    }
    if (done.kind === "done") this.#room.refresh();
    return true;
  }

  // --- lines waiting for the gateway --------------------------------------------------------------

  #keep(body) {
    this.#unsent.push(body);
    this.#drawNote();
    if (this.#room.status === "live") this.#sendUnsent();
    return true;
  }

  /** Send the waiting lines in order, each with the id of its earlier attempt. */
  async #sendUnsent() {
    if (this.#isSending) return;
    this.#isSending = true;
    while (this.#unsent.length) {
      const [body] = this.#unsent;
      try {
        await this.#finish(await act("/line", body), body);
      } catch (error) {
        if (error.status === 0) {
          setTimeout(() => this.#sendUnsent(), AGAIN_MS);
          break;
        }
        tell(`${shortened(body.line, EXCERPT)}: ${error.message}`, { isError: true, hint: error.hint });
      }
      this.#unsent = this.#unsent.filter((one) => one !== body);
      this.#drawNote();
    }
    this.#isSending = false;
  }

  #answer(message) {
    this.#answered = message;
    this.#drawNote();
  }

  /** Show above the field the message being replied to and the lines not sent yet. */
  #drawNote() {
    const note = byId("composer-note");
    const waits = this.#unsent.length && `${several(this.#unsent.length, "message")} queued: sent when the gateway is back.`;
    const answered = this.#answered && `Reply to ${this.#answered.sender === "human" ? "you" : this.#answered.sender} #${this.#answered.seq}`;
    const drop = () => {
      this.#unsent = [];
      this.#answer(null);
      this.#text.focus();
    };
    const label = waits ? "Do not send" : "Do not reply";
    swap(note, document.createTextNode([waits, answered].filter(Boolean).join(" ")), button("×", drop, { class: "icon", "aria-label": label, title: label }));
    set(note, { hidden: !waits && !answered });
  }
}
