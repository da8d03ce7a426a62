// Notifies listeners of changes.

/** @template T */
export class Topic {
  #listeners = new Set();

  /** @param {(value: T) => void} listener */
  on(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** @param {T} [value] */
  tell(value) {
    for (const listener of this.#listeners) listener(value);
  }
}

/** Repeats a request when something has changed: immediately, but at most once every `restMs`. */
export class Looker {
  #look;
  #restMs;
  #busy = false;
  #stale = false;
  #ended = false;
  /** Whether a request is in progress. */
  isLooking = false;

  /** @param {() => Promise<void>} look  @param {number} restMs */
  constructor(look, restMs) {
    this.#look = look;
    this.#restMs = restMs;
  }

  /** Stop making requests. */
  end() {
    this.#ended = true;
  }

  async wake() {
    this.#stale = true;
    if (this.#busy) return;
    this.#busy = true;
    try {
      while (this.#stale && !this.#ended) {
        this.#stale = false;
        this.isLooking = true;
        await this.#look().catch(() => {}); // the stream's status reports an unreachable gateway
        this.isLooking = false;
        await pause(this.#restMs);
      }
    } finally {
      this.#busy = false;
    }
  }
}

/** @param {number} ms */
export function pause(ms) {
  return new Promise((done) => setTimeout(done, ms));
}
