// Where the person writes.

import { act } from "./api.js";
import { catalogue } from "./catalogue.js";
import { runCommand } from "./commands.js";
import { Completion } from "./completion.js";
import { byId, h, offer, set } from "./dom.js";
import { attempt, tell } from "./toast.js";

const MAX_LINES_PX = 240;

export class Composer {
  #room;
  #text = byId("composer-text");
  #target = byId("composer-target");
  #completion;

  /** @param {import("./room.js").Room} room */
  constructor(room) {
    this.#room = room;
    this.#completion = new Completion(this.#text, byId("completion"), () => this.#words());
    room.agentsChanged.on(() => this.#offerTargets());
    byId("composer").addEventListener("submit", (event) => this.#submit(event));
    this.#text.addEventListener("keydown", (event) => this.#key(event));
    this.#text.addEventListener("input", () => this.#grow());
    this.#offerTargets();
  }

  #offerTargets() {
    const aimed = this.#target.value;
    const several = aimed.includes(",") ? [aimed] : [];
    const names = [...this.#room.agents.map((agent) => agent.id), ...Object.keys(catalogue.groups), ...several];
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
    this.#text.style.height = `${Math.min(this.#text.scrollHeight + 2, MAX_LINES_PX)}px`;
  }

  async #submit(event) {
    event.preventDefault();
    const line = this.#text.value;
    if (!line.trim()) return;
    this.#put("");
    set(byId("composer"), { "aria-busy": "true" });
    const isDone = await this.#send(line);
    set(byId("composer"), { "aria-busy": "false" });
    // What could not be sent is given back, unless the person has begun something new.
    if (!isDone && !this.#text.value) this.#put(line);
  }

  #put(text) {
    this.#text.value = text;
    this.#completion.close();
    this.#grow();
  }

  /** Have the gateway do what a line says; return whether it was done. */
  async #send(line, confirmed = undefined) {
    const body = { line, to: this.#target.value, thread: this.#room.thread ?? undefined, confirmed };
    // The WebSocket needs no free connection, of which a browser has few: the line may be an Allstop.
    const hurry = (id) => this.#room.hurry({ op: "line", ...body, id });
    const done = await attempt(act("/line", body, hurry));
    if (!done) return false;
    if (done.kind === "target") this.#aim(done.to);
    if (done.kind === "message" && !done.recipients?.length) tell("No agents yet; nobody received this.");
    if (done.kind === "command") return runCommand(done.name, done.rest ?? "");
    if (done.kind === "confirm" || done.kind === "ask_replace") return confirm(done.question) && this.#send(line, true);
    if (done.kind === "ask_topic") {
      tell(done.question, { hint: `/mode ${done.name} "topic"` });
      return false;
    }
    if (done.kind === "done") this.#room.refresh();
    return true;
  }

  /** Have plain texts go to somebody from now on; several names have commas between them. */
  #aim(to) {
    if (![...this.#target.options].some(({ value }) => value === to)) {
      this.#target.append(h("option", { value: to }, to.replaceAll(",", ", ")));
    }
    this.#target.value = to;
  }
}
