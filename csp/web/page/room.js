// The room as this page knows it: what the gateway told, kept fresh by the stream of events.

import { get, part } from "./api.js";
import { Pacer } from "./pace.js";
import { Stream } from "./stream.js";
import { Looker, Topic } from "./topic.js";

const SAID = new Set(["human_message", "agent_call", "agent_response", "system"]);
const NEWS = new Set(["joined", "left", "redacted"]);
const OF_SESSIONS = new Set(["mode", "turn", "turn_signal", "vote"]);
const REST_MS = 250;
/** How long events may be applied before the browser gets its turn to draw. */
const SLICE_MS = 12;

export class Room {
  name = "";
  agents = [];
  sessions = [];
  /** The session that the panels show: {session, orchestration}, or null. */
  shown = null;
  usage = { items: [], prices: null };
  queue = [];
  status = "connecting";
  /** The session whose talk is shown alone; null: everything. */
  view = null;

  said = new Topic();
  moved = new Topic();
  news = new Topic();
  live = new Topic();
  noted = new Topic();
  gap = new Topic();
  agentsChanged = new Topic();
  sessionsChanged = new Topic();
  sessionEvent = new Topic();
  usageChanged = new Topic();
  queueChanged = new Topic();
  statusChanged = new Topic();
  viewChanged = new Topic();

  #events = [];
  #applying = new Pacer(() => this.#apply());
  #lookers;
  #stream;

  constructor() {
    this.#lookers = {
      agents: new Looker(() => this.#lookAtAgents(), REST_MS),
      sessions: new Looker(() => this.#lookAtSessions(), REST_MS),
      usage: new Looker(() => this.#lookAtUsage(), 4 * REST_MS),
      queue: new Looker(() => this.#lookAtQueue(), 2 * REST_MS),
    };
    this.#stream = new Stream({
      event: (event) => this.#queue(event),
      live: (live) => this.live.tell(live),
      gap: () => this.gap.tell(),
      status: (status) => this.#setStatus(status),
    });
  }

  /** The last event that this page has. */
  get seq() {
    return this.#stream.seq;
  }

  /** Look at everything once, then follow what happens. */
  async open() {
    const health = await get("/health");
    this.name = health.room;
    this.#stream.run(health.seq);
    this.refresh();
  }

  refresh() {
    for (const looker of Object.values(this.#lookers)) looker.wake();
  }

  close() {
    for (const looker of Object.values(this.#lookers)) looker.end();
    this.#stream.close();
  }

  watch = (agent) => this.#stream.watch(agent);
  unwatch = (agent) => this.#stream.unwatch(agent);
  /** Send an operation over the connection that is open already, if it is; nobody waits for its answer. */
  hurry = (op) => this.#stream.send(op);

  agent(id) {
    return this.agents.find((agent) => agent.id === id);
  }

  /** The sessions that have not ended. */
  get running() {
    return this.sessions.filter((session) => session.status !== "ended");
  }

  /** In which thread the person speaks and stops things; null where it is all of them. */
  get thread() {
    return this.sessions.find((session) => session.id === this.view)?.thread ?? null;
  }

  /** Show one session alone, or everything. */
  choose(session) {
    this.view = session;
    this.viewChanged.tell();
    this.#lookers.sessions.wake();
  }

  // --- events ----------------------------------------------------------------------------------

  #queue(event) {
    this.#events.push(event);
    this.#applying.wake();
  }

  /** Apply events for one slice of time. */
  #apply() {
    const began = performance.now();
    let done = 0;
    while (done < this.#events.length && performance.now() - began < SLICE_MS) this.#take(this.#events[done++]);
    this.#events.splice(0, done);
    if (this.#events.length) this.#applying.wake();
    return false;
  }

  #take(event) {
    const wake = (name) => this.#lookers[name].wake();
    if (SAID.has(event.type)) this.said.tell(event);
    else if (event.type === "delivery") this.moved.tell(event);
    else if (NEWS.has(event.type)) this.news.tell(event);
    if (OF_SESSIONS.has(event.type) || event.type.startsWith("run.")) {
      this.sessionEvent.tell(event);
      wake("sessions");
    }
    if (event.type === "note" || event.type === "redacted" || event.idx !== undefined) this.noted.tell();
    if (event.usage) {
      wake("usage");
      wake("sessions");
    }
    if (event.type !== "system") wake("agents");
    if (event.recipients?.length || event.type === "delivery") wake("queue");
  }

  #setStatus(status) {
    const was = this.status;
    this.status = status;
    // What was missed is in the stream; what has no event, and whether we are still let in, must be asked.
    if (was !== status) this.refresh();
    this.statusChanged.tell();
  }

  // --- looking ---------------------------------------------------------------------------------

  async #lookAtAgents() {
    this.agents = (await get("/agents")).filter((agent) => agent.kind !== "human");
    this.agentsChanged.tell();
  }

  async #lookAtSessions() {
    this.sessions = (await get("/sessions")).items;
    const id = this.view ?? (this.running.at(-1) ?? this.sessions.at(-1))?.id;
    this.shown = id ? await get(`/sessions/${part(id)}`) : null;
    this.sessionsChanged.tell();
  }

  async #lookAtUsage() {
    this.usage = await get("/usage");
    this.usageChanged.tell();
  }

  async #lookAtQueue() {
    this.queue = (await get("/queue")).items;
    this.queueChanged.tell();
  }
}
