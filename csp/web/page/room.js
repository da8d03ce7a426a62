// The page's copy of the room's state, loaded from the gateway and updated by events.

import { get, part } from "./api.js";
import { catalogue } from "./catalogue.js";
import { Pacer } from "./pace.js";
import { reduceAgents, reduceQueue, reduceUsage } from "./reducer.js";
import { Stream } from "./stream.js";
import { Looker, Topic } from "./topic.js";

const SAID = new Set(["human_message", "agent_call", "agent_response", "system"]);
const NEWS = new Set(["joined", "left", "redacted"]);
const REPLIES = new Set(["agent_response", "agent_call"]);
const OF_SESSIONS = new Set(["mode", "turn", "turn_signal", "vote"]);
const REST_MS = 250;
/** The time for which events are applied before the browser may draw. */
const SLICE_MS = 12;
/** More events than this between two frames are a flood, after which drawing pauses. */
const CALM = 8;
const MAX_TRIES = 3;

export class Room {
  name = "";
  agents = [];
  sessions = [];
  /** The session shown in the panels: {session, orchestration}, or null. */
  shown = null;
  usage = { items: [], prices: null };
  queue = [];
  /** The gateway's list of items that need a person, oldest first. */
  attention = [];
  /** Each agent's latest activity text since its last reply: {text, ts} by agent. */
  doing = new Map();
  /** The review run of the shown session, with its details, or null. */
  run = null;
  status = "connecting";
  /** The only session whose messages are shown; null for all messages. */
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
  attentionChanged = new Topic();
  runChanged = new Topic();
  statusChanged = new Topic();
  viewChanged = new Topic();

  #events = [];
  #applying = new Pacer(() => this.#apply());
  /** Lists that the events of this slice made outdated. */
  #stale = new Set();
  /** Lists changed since they were last drawn, and the number of events applied. */
  #changed = new Set();
  #applied = 0;
  #telling = new Pacer(() => this.#tellChanged());
  /** The number of times that events have changed each list. */
  #reduced = { agents: 0, queue: 0 };
  /** Replies that arrived while the usage was being requested. */
  #unspent = [];
  #lookers;
  #stream;

  constructor() {
    this.#lookers = {
      agents: new Looker(() => this.#lookAtAgents(), REST_MS),
      sessions: new Looker(() => this.#lookAtSessions(), REST_MS),
      shown: new Looker(() => this.#lookAtShown(), REST_MS),
      usage: new Looker(() => this.#lookAtUsage(), 4 * REST_MS),
      queue: new Looker(() => this.#lookAtQueue(), 2 * REST_MS),
      attention: new Looker(() => this.#lookAtAttention(), 2 * REST_MS),
    };
    this.#stream = new Stream({
      event: (event) => this.#queue(event),
      live: (live) => this.live.tell(live),
      gap: () => this.gap.tell(),
      status: (status) => this.#setStatus(status),
    });
  }

  /** The seq of the last event that this page has received. */
  get seq() {
    return this.#stream.seq;
  }

  /** Load the whole state once, then follow events. */
  async open() {
    const health = await get("/health");
    this.name = health.room;
    this.#stream.run(health.seq);
    this.refresh();
  }

  refresh() {
    for (const name of ["agents", "sessions", "usage", "queue", "attention"]) this.#lookers[name].wake();
  }

  close() {
    for (const looker of Object.values(this.#lookers)) looker.end();
    this.#stream.close();
  }

  watch = (agent) => this.#stream.watch(agent);
  unwatch = (agent) => this.#stream.unwatch(agent);
  /** Send an operation over the WebSocket if it is open, without waiting for a response. */
  hurry = (op) => this.#stream.send(op);

  agent(id) {
    return this.agents.find((agent) => agent.id === id);
  }

  /** The sessions that have not ended. */
  get running() {
    return this.sessions.filter((session) => session.status !== "ended");
  }

  /**
   * Return the session that runs in a thread, if any. The gateway is asked: the list of this page is a moment older
   * than the last event, and somebody else may just have started one.
   * @param {string} thread
   */
  async runningIn(thread) {
    return (await get("/sessions")).items.find((session) => session.thread === thread && session.status !== "ended");
  }

  /** The thread in which the user writes and stops work; null for all threads. */
  get thread() {
    return this.sessions.find((session) => session.id === this.view)?.thread ?? null;
  }

  /** Show only one session, or everything. */
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
    this.#applied += done;
    // The events of one reply arrive together and share one request.
    for (const name of this.#stale) this.#lookers[name].wake();
    this.#stale.clear();
    if (this.#events.length) this.#applying.wake();
    return false;
  }

  #take(event) {
    if (SAID.has(event.type)) this.said.tell(event);
    else if (event.type === "delivery") this.moved.tell(event);
    else if (NEWS.has(event.type)) this.news.tell(event);
    if (OF_SESSIONS.has(event.type) || event.type.startsWith("run.")) this.sessionEvent.tell(event);
    this.#notice(event);
    if (event.type === "note" || event.type === "redacted" || event.idx !== undefined) this.noted.tell();
    this.#reduce(event);
  }

  /** Record an agent's activity, and whether the list of items that need a person may have changed. */
  #notice(event) {
    const isActivity = event.type === "activity";
    if (isActivity) this.doing.set(event.sender, { text: event.text, ts: event.ts });
    if (isActivity || (REPLIES.has(event.type) && this.doing.delete(event.sender))) {
      this.#changed.add(this.agentsChanged);
      this.#telling.wake();
    }
    if (catalogue.attention_events.includes(event.type)) this.#stale.add("attention");
  }

  /** Apply an event to the state; schedule requests for lists that it makes outdated. */
  #reduce(event) {
    this.#keep("agents", reduceAgents(this.agents, event), this.agentsChanged);
    this.#keep("queue", reduceQueue(this.queue, this.agents, event), this.queueChanged);
    this.#spend(event);
    const isOfSession = OF_SESSIONS.has(event.type) || event.type.startsWith("run.") || (event.usage && event.session_id);
    if (!isOfSession) return;
    // A turn changes the shown session; a new session, or a change to another one, changes the list.
    const isShown = this.shown && event.session_id === this.shown.session.id;
    const isNew = event.type === "mode" && (event.change === "started" || !isShown);
    this.#stale.add(isNew || !this.shown ? "sessions" : "shown");
  }

  #keep(name, value, changed) {
    if (value === this[name]) return;
    if (value !== null) {
      this[name] = value;
      this.#reduced[name] += 1;
      this.#changed.add(changed);
      this.#telling.wake();
    }
    if (value === null) this.#stale.add(name);
  }

  /** Add the usage of an event, unless the gateway's figures already include it. */
  #spend(event) {
    if (!event.usage || event.seq <= (this.usage.seq ?? 0)) return;
    if (this.#lookers.usage.isLooking) this.#unspent.push(event);
    const items = reduceUsage(this.usage.items, event);
    if (items === null) {
      this.#stale.add("usage");
      return;
    }
    this.usage = { ...this.usage, items };
    this.#changed.add(this.usageChanged);
    this.#telling.wake();
  }

  /** Announce the lists changed since the last frame; return whether there were many events. */
  #tellChanged() {
    const [changed, isMuch] = [[...this.#changed], this.#applied > CALM];
    this.#changed.clear();
    this.#applied = 0;
    for (const topic of changed) topic.tell();
    return isMuch;
  }

  #setStatus(status) {
    const was = this.status;
    this.status = status;
    // Missed events are in the stream; state without events, and our access, must be checked by requests.
    if (was !== status) this.refresh();
    this.statusChanged.tell();
  }

  // --- requests --------------------------------------------------------------------------------

  async #lookAtAgents() {
    const found = await this.#fresh("agents", "/agents");
    this.agents = found.filter((agent) => agent.kind !== "human");
    this.agentsChanged.tell();
  }

  /** Request a list; repeat the request if an event arrived meanwhile that the response may not include. */
  async #fresh(name, path) {
    for (let tries = 1; ; tries += 1) {
      const before = this.#reduced[name];
      const found = await get(path);
      // If events arrive continuously, a slightly outdated response is better than none.
      if (before === this.#reduced[name] || tries === MAX_TRIES) return found;
    }
  }

  async #lookAtSessions() {
    this.sessions = (await get("/sessions")).items;
    const id = this.view ?? (this.running.at(-1) ?? this.sessions.at(-1))?.id;
    this.shown = id ? await get(`/sessions/${part(id)}`) : null;
    this.sessionsChanged.tell();
  }

  /** Request the shown session, and update its entry in the list. */
  async #lookAtShown() {
    const id = this.shown?.session.id;
    if (!id) return;
    const found = await get(`/sessions/${part(id)}`);
    if (this.shown?.session.id !== id) return;
    this.shown = found;
    this.sessions = this.sessions.map((session) => (session.id === id ? found.session : session));
    this.sessionsChanged.tell();
  }

  async #lookAtUsage() {
    this.#unspent = [];
    const { items, ...rest } = await get("/usage");
    const missed = this.#unspent.filter((event) => event.seq > (rest.seq ?? 0));
    this.usage = { ...rest, items: missed.reduce((rows, event) => reduceUsage(rows, event) ?? rows, items) };
    this.usageChanged.tell();
  }

  async #lookAtQueue() {
    const found = await this.#fresh("queue", "/queue");
    this.queue = found.items;
    this.queueChanged.tell();
  }

  async #lookAtAttention() {
    // A gateway without event types for the list does not provide it.
    if (!catalogue.attention_events.length) return;
    this.attention = (await get("/attention")).items ?? [];
    this.attentionChanged.tell();
  }
}
