// Where the person writes.

import { act, get } from "./api.js";
import { stop } from "./acts.js";
import { runCommand, COMMANDS } from "./commands.js";
import { Completion } from "./completion.js";
import { byId, h, set, swap } from "./dom.js";
import { attempt, tell } from "./toast.js";
import { readTyped } from "./typed.js";

const LAST = /\{([A-Za-z0-9][A-Za-z0-9-]{0,31})\.last\}/g;
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
    room.agentsChanged.on(() => this.#fillTargets());
    byId("composer").addEventListener("submit", (event) => this.#submit(event));
    this.#text.addEventListener("keydown", (event) => this.#key(event));
    this.#text.addEventListener("input", () => this.#grow());
    this.#fillTargets();
  }

  #fillTargets() {
    const chosen = this.#target.value || "all";
    const ids = ["all", ...this.#room.agents.map((agent) => agent.id)];
    if (ids.join() === [...this.#target.options].map((option) => option.value).join()) return;
    swap(this.#target, ...ids.map((id) => h("option", { value: id }, id === "all" ? "everybody" : id)));
    this.#target.value = ids.includes(chosen) ? chosen : "all";
  }

  #words() {
    const names = ["all", ...this.#room.agents.map((agent) => agent.id)];
    return {
      "@": names.map((id) => ({ word: `@${id} `, about: this.#room.agent(id)?.state ?? "everybody" })),
      "!": names.map((id) => ({ word: `!${id} `, about: "urgent: interrupts it" })),
      "/": COMMANDS.map(({ name, usage, help }) => ({ word: `/${name} `, about: `${usage ?? ""} ${help}`.trim() })),
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
    const text = this.#text.value;
    const typed = readTyped(text, this.#target.value);
    if (typed.kind === "nothing") return;
    this.#put("");
    // What could not be sent is given back, unless the person has begun something new.
    if (!(await this.#do(typed, text.trim())) && !this.#text.value) this.#put(text);
  }

  #put(text) {
    this.#text.value = text;
    this.#completion.close();
    this.#grow();
  }

  async #do(typed, whole) {
    switch (typed.kind) {
      case "aim":
        return this.#aim(typed.to);
      case "stop":
        return stop(this.#room, whole);
      case "mode":
        return this.#setMode(typed.body);
      case "command":
        return runCommand(this.#room, typed);
      case "wrong":
        tell(typed.problem, { isError: true, hint: typed.hint });
        return false;
      default:
        return this.#send(typed);
    }
  }

  #aim(to) {
    const known = [...this.#target.options].some((option) => option.value === to);
    if (known) this.#target.value = to;
    else tell(`there is no ${to} here`, { isError: true });
    return known;
  }

  async #setMode(body) {
    return (await attempt(act("/mode", { ...body, thread: this.#room.thread ?? undefined }))) !== null;
  }

  async #send({ to, text, urgent }) {
    set(byId("composer"), { "aria-busy": "true" });
    const content = await attempt(this.#filledIn(text));
    const body = { to, content, urgent, thread: this.#room.thread ?? undefined };
    const sent = content !== null && (await attempt(act("/message", body)));
    set(byId("composer"), { "aria-busy": "false" });
    if (sent && !sent.recipients.length) tell(`nobody is there to read it`);
    return Boolean(sent);
  }

  /** Put in what agents said last, for each {name.last}. */
  async #filledIn(text) {
    let filled = text;
    for (const [whole, name] of text.matchAll(LAST)) {
      const page = await get(`/history?types=agent_response,agent_call&agent=${name.toLowerCase()}&limit=50`);
      const last = page.items.findLast((item) => item.sender === name.toLowerCase());
      if (last) filled = filled.replace(whole, () => last.text);
    }
    return filled;
  }
}
