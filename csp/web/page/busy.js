// The agents that are working now, below the last message, with a model's text as it arrives.

import { byId, h, setText, swap } from "./dom.js";
import { hueOf } from "./words.js";

const ROWS = 3;

export class Busy {
  #room;
  #rows = new Map();

  /** @param {import("./room.js").Room} room */
  constructor(room) {
    this.#room = room;
    room.agentsChanged.on(() => this.#arrange());
    room.live.on((live) => this.#hear(live));
    document.addEventListener("visibilitychange", () => this.#arrange());
  }

  #arrange() {
    const busy = document.hidden ? [] : this.#room.agents.filter((agent) => agent.state === "busy");
    const ids = busy.map((agent) => agent.id);
    for (const id of [...this.#rows.keys()].filter((one) => !ids.includes(one))) this.#end(id);
    for (const agent of busy) if (!this.#rows.has(agent.id)) this.#begin(agent);
    swap(byId("busy"), ...[...this.#rows.values()].map((row) => row.element));
  }

  #begin({ id, kind }) {
    const words = h("span", { class: "busy-words", dir: "auto" });
    const element = h("li", { vars: { hue: hueOf(id) } }, h("b", { class: "name" }, id), h("span", {}, " is working"), h("span", { class: "dots", "aria-hidden": "true" }), " ", words);
    this.#rows.set(id, { element, words, isWatched: kind === "api" });
    if (kind === "api") this.#room.watch(id);
  }

  #end(id) {
    if (this.#rows.get(id).isWatched) this.#room.unwatch(id);
    this.#rows.delete(id);
  }

  #hear(live) {
    const row = this.#rows.get(live.agent);
    if (!row?.isWatched || !live.screen) return;
    const lines = live.screen.rows.map((runs) => runs.map(([text]) => text).join("")).filter((line) => line.trim());
    setText(row.words, lines.slice(-ROWS).join(" ⏎ "));
  }
}
