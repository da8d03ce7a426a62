// The delivery state of each message, per recipient.

import { act as actOnce, get, part } from "./api.js";
import { button, h, keep, swap } from "./dom.js";
import { Pacer } from "./pace.js";
import { textElement } from "./text.js";
import { attempt } from "./toast.js";
import { stepOf, whyHeld } from "./words.js";

const MAX_KNOWN = 2000;
const AT_ONCE = 4;
/** The number of messages whose new states are drawn in one frame. */
const DRAWN_AT_ONCE = 30;
/** If there are more recipients than this, they are shown by state, not by name. */
const MAX_NAMED = 12;
const UNDONE = ["failed", "ended"];

/** The states of messages: live ones come from events, older ones are requested when they become visible. */
export class Ticks {
  #known = new Map();
  #shown = new Map();
  #changed = new Set();
  #pacer = new Pacer(() => this.#drawChanged());
  #wanted = [];
  #asking = 0;

  /** Record a change of a message's state. */
  take(event) {
    this.#keep(event.message, { [event.agent]: { state: event.state, reason: event.reason } });
  }

  #keep(id, steps) {
    const known = { ...this.#known.get(id), ...steps };
    keep(this.#known, id, known, MAX_KNOWN);
    if (!this.#shown.has(id)) return;
    this.#changed.add(id);
    this.#pacer.wake();
  }

  #drawChanged() {
    const ids = [...this.#changed].slice(0, DRAWN_AT_ONCE);
    for (const id of ids) {
      this.#changed.delete(id);
      this.#draw(id);
    }
    if (this.#changed.size) this.#pacer.wake();
    return ids.length === DRAWN_AT_ONCE;
  }

  #draw(id) {
    const shown = this.#shown.get(id);
    if (shown) draw(shown.place, id, { ...shown.queued, ...this.#known.get(id) });
  }

  /** Show the states of a message in `place`. */
  show(message, place, { isLive }) {
    // The pending recipients of an old message are not known yet.
    const queued = isLive ? Object.fromEntries(message.recipients.map((agent) => [agent, { state: "queued" }])) : {};
    this.#shown.set(message.id, { place, queued });
    if (isLive || this.#known.has(message.id)) this.#draw(message.id);
    if (!isLive) this.#ask(message.id);
  }

  hide(id) {
    this.#shown.delete(id);
  }

  /** Hide all of them. */
  clear() {
    this.#shown.clear();
  }

  #ask(id) {
    this.#wanted.push(id);
    while (this.#wanted.length && this.#asking < AT_ONCE) this.#askNext();
  }

  async #askNext() {
    // The newest request first, because its message is in view.
    const id = this.#wanted.pop();
    if (!this.#shown.has(id)) return;
    this.#asking += 1;
    try {
      this.#keep(id, (await get(`/messages/${part(id)}`)).recipients);
    } catch {
      // A pruned message no longer has states.
    } finally {
      this.#asking -= 1;
      if (this.#wanted.length) this.#askNext();
    }
  }
}

function draw(place, id, steps) {
  const kinds = new Set(Object.values(steps).map((step) => stepOf(step.state).kind));
  swap(
    place,
    ...grouped(Object.entries(steps)).map(([agent, step]) => tick(agent, step)),
    kinds.has("waits") && act(id, "Cancel", "cancel"),
    Object.values(steps).some((step) => step.reason === "loop") && act(id, "Let through", "continue"),
    UNDONE.some((kind) => kinds.has(kind)) && act(id, "Send again", "resend"),
  );
}

/** Name all recipients; if there are too many, count those in the same state. */
function grouped(steps) {
  if (steps.length <= MAX_NAMED) return steps;
  const groups = Object.groupBy(steps, ([, { state, reason }]) => `${state} ${reason ?? ""}`);
  return Object.values(groups).map((same) => [same.length === 1 ? same[0][0] : `${same.length} agents`, same[0][1]]);
}

function tick(agent, { state, reason }) {
  const step = stepOf(state);
  const why = reason ? `: ${whyHeld(reason)}` : "";
  return h("span", { class: "tick", data: { kind: step.kind, state } },
    h("span", { class: "tick-name" }, agent), textElement("span", {}, `${step.text}${why}`, ` ${step.sign} `));
}

function act(id, label, action) {
  return button(label, () => attempt(actOnce(`/messages/${part(id)}/${action}`)), { class: "link", "aria-label": `${label}: ${id}` });
}
