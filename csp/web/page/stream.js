// The WebSocket to the room: delivers every event once and in order, even if the connection is lost.

import { addressOf, gatewayCount, moveOn, token, untilLeft } from "./access.js";
import { pause } from "./topic.js";

const FIRST_WAIT_MS = 300;
const LONGEST_WAIT_MS = 10_000;
/** If there is another gateway, a frozen one is left sooner. */
const PING_MS = gatewayCount > 1 ? 2_000 : 15_000;
const ANSWER_MS = gatewayCount > 1 ? 2_000 : 10_000;
/** An id that no agent can have: unwatching it has no effect but shows that the gateway responds. */
const NOBODY = "none";

export class Stream {
  #on;
  #socket = null;
  #waitMs = FIRST_WAIT_MS;
  /** The agents whose screens are watched, with the number of watchers on this page. */
  #watched = new Map();
  #heardAt = 0;
  #closed = false;
  /** The seq of the last event that was delivered. */
  seq = 0;

  /**
   * @param {{event: (event: any) => void, live: (live: any) => void, gap: () => void,
   *          status: (status: "live" | "lost" | "refused") => void}} on
   */
  constructor(on) {
    this.#on = on;
    window.addEventListener("online", () => this.#hurry());
    document.addEventListener("visibilitychange", () => document.hidden || this.#hurry());
    setInterval(() => this.#ping(), PING_MS);
  }

  /** Deliver the events after `seq` until the page is closed. */
  async run(seq) {
    this.seq = seq;
    while (!this.#closed) {
      const left = untilLeft();
      const code = await this.#once();
      if (this.#closed) return;
      if (code === 4001) {
        this.#on.status("refused");
        return;
      }
      this.#on.status("lost");
      // A call may have moved on already.
      if (!left.aborted) moveOn();
      await Promise.race([pause(this.#waitMs * (0.5 + Math.random())), this.#hurried()]);
      this.#waitMs = Math.min(this.#waitMs * 2, LONGEST_WAIT_MS);
    }
  }

  close() {
    this.#closed = true;
    this.#socket?.close();
  }

  /** Start watching an agent's screen. */
  watch(agent) {
    this.#watched.set(agent, (this.#watched.get(agent) ?? 0) + 1);
    // A new request returns the complete screen, which a new watcher needs.
    this.send({ op: "unwatch", screen: agent });
    this.send({ op: "watch", screen: agent });
  }

  unwatch(agent) {
    const rest = (this.#watched.get(agent) ?? 0) - 1;
    if (rest > 0) this.#watched.set(agent, rest);
    else if (this.#watched.delete(agent)) this.send({ op: "unwatch", screen: agent });
  }

  /** Serve one connection; return its close code. */
  #once() {
    const url = new URL(addressOf(`/ws?after=${this.seq}`), location.href);
    url.protocol = url.protocol.replace("http", "ws");
    return new Promise((closed) => {
      const socket = new WebSocket(url, ["csp", `csp-token.${token() ?? ""}`]);
      this.#socket = socket;
      socket.addEventListener("open", () => this.#opened());
      socket.addEventListener("message", (message) => this.#take(JSON.parse(message.data)));
      socket.addEventListener("close", (event) => closed(event.code));
    });
  }

  #opened() {
    this.#waitMs = FIRST_WAIT_MS;
    this.#heardAt = performance.now();
    for (const agent of this.#watched.keys()) this.send({ op: "watch", screen: agent });
    this.#on.status("live");
  }

  #take(frame) {
    this.#heardAt = performance.now();
    if (frame.live) this.#on.live(frame.live);
    else if (frame.seq > this.seq) {
      // Event numbers have no gaps, so a gap means that the journal was pruned in the meantime.
      if (frame.seq !== this.seq + 1) this.#on.gap();
      this.seq = frame.seq;
      this.#on.event(frame);
    }
  }

  /** Send a frame if the connection is open. */
  send(frame) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(frame));
  }

  /** Send a probe, and close the connection if there is no response: a lost one looks open for minutes. */
  #ping() {
    const asked = performance.now();
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    this.send({ op: "unwatch", screen: NOBODY });
    const socket = this.#socket;
    setTimeout(() => this.#heardAt < asked && socket.close(), ANSWER_MS);
  }

  #hurry = () => {};

  #hurried() {
    return new Promise((now) => (this.#hurry = now));
  }
}
