// The turns of a session over time, with one lane per agent.

import { get, now, part } from "./api.js";
import { byId, h, set, svg, swap } from "./dom.js";
import { attempt } from "./toast.js";
import { hueOf } from "./words.js";

const OVER = new Set(["replied", "timed_out", "failed", "cancelled"]);
const WORDS = { asked: "asked", delivered: "delivered", working: "working", blocked: "blocked", replied: "replied", timed_out: "timed out", failed: "failed", cancelled: "cancelled" };
const LANE = 22;
const WIDTH = 300;
const NAME = 78;
const MOST = 300;

export class Timeline {
  #room;
  #session = null;
  /** @type {Map<string, {agent: string, from: number, to: number | null, state: string, round: number}>} */
  #turns = new Map();
  /** Events that arrive while earlier turns are being loaded; they are applied afterwards. */
  #heard = null;
  #drawing = 0;

  /** @param {import("./room.js").Room} room */
  constructor(room) {
    this.#room = room;
    room.sessionsChanged.on(() => this.#follow());
    room.sessionEvent.on((event) => (this.#heard ? this.#heard.push(event) : this.#take(event) && this.#drawSoon()));
    setInterval(() => this.#isMoving() && this.#drawSoon(), 1000);
  }

  #isMoving() {
    return this.#room.shown?.session.status === "running" && !document.hidden;
  }

  async #follow() {
    const id = this.#room.shown?.session.id ?? null;
    // A session that has just ended does not change any more and is drawn to its end.
    if (id === this.#session) return this.#drawSoon();
    this.#session = id;
    this.#turns.clear();
    this.#heard = null;
    if (id) {
      const heard = (this.#heard = []);
      const page = await attempt(get(`/history?types=turn,turn_signal&session=${part(id)}&limit=1000`));
      // Another session may have been selected meanwhile, which waits for its own turns.
      if (this.#heard !== heard) return;
      this.#heard = null;
      for (const event of [...(page?.items ?? []), ...heard]) this.#take(event);
    }
    this.#drawSoon();
  }

  /** Record a change of a turn; return whether it belongs to this session. */
  #take(event) {
    if (event.session_id !== this.#session || !event.turn) return false;
    const known = this.#turns.get(event.turn);
    if (event.type === "turn_signal" && !known) {
      this.#turns.set(event.turn, { agent: event.target, from: event.ts, to: null, state: "asked", round: event.round ?? 0 });
    } else if (event.type === "turn" && known) {
      known.state = event.state;
      if (OVER.has(event.state)) known.to = event.ts;
    } else return false;
    while (this.#turns.size > MOST) this.#turns.delete(this.#turns.keys().next().value);
    return true;
  }

  #drawSoon() {
    this.#drawing ||= requestAnimationFrame(() => {
      this.#drawing = 0;
      this.#draw();
    });
  }

  #draw() {
    const turns = [...this.#turns.values()];
    set(byId("timeline-part"), { hidden: !turns.length });
    if (!turns.length) return;
    const lanes = [...new Set(turns.map((turn) => turn.agent))];
    const known = Math.max(...turns.map((turn) => turn.to ?? turn.from));
    // The gateway's time is known only to about a second.
    const end = this.#isMoving() ? Math.max(known, now()) : known;
    const begin = turns[0].from;
    const scale = (WIDTH - NAME - 4) / Math.max(1, end - begin);
    const place = (ts) => NAME + (ts - begin) * scale;
    const chart = svg("svg", { viewBox: `0 0 ${WIDTH} ${lanes.length * LANE}`, role: "img", "aria-label": spoken(turns) },
      ...lanes.map((agent, index) => lane(agent, index)),
      ...turns.map((turn) => bar(turn, lanes.indexOf(turn.agent), place, end)));
    swap(byId("timeline"), chart, h("p", { class: "hint" }, last(turns)));
  }
}

function lane(agent, index) {
  const y = index * LANE;
  return svg("g", {},
    svg("line", { class: "lane", x1: NAME, x2: WIDTH, y1: y + LANE / 2, y2: y + LANE / 2 }),
    svg("text", { class: "lane-name", x: 0, y: y + LANE / 2 + 4 }, agent.length > 11 ? `${agent.slice(0, 10)}…` : agent));
}

function bar(turn, index, place, end) {
  const x = place(turn.from);
  const width = Math.max(3, place(turn.to ?? end) - x);
  return svg("rect", { class: `turn ${turn.state}`, x, y: index * LANE + 4, width, height: LANE - 8, rx: 3, vars: { hue: hueOf(turn.agent) } },
    svg("title", {}, `${turn.agent}, round ${turn.round}: ${WORDS[turn.state] ?? turn.state}${took(turn)}`));
}

function took(turn) {
  return turn.to ? ` after ${(turn.to - turn.from).toFixed(1)} s` : "";
}

function spoken(turns) {
  return `Turns: ${turns.slice(-20).map((turn) => `${turn.agent} ${WORDS[turn.state]}`).join(", ")}`;
}

function last(turns) {
  const turn = turns.at(-1);
  return `Turn ${turns.length}: ${turn.agent}, ${WORDS[turn.state] ?? turn.state}${took(turn)}`;
}
