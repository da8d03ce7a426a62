// A window on the history: a limited number of consecutive messages.

/** The maximum number of messages on the page; others are fetched again on scrolling. */
export const MAX_ITEMS = 400;

export class Log {
  /** @type {any[]} oldest first */
  items = [];
  /** Whether the last message here is the newest in the history. */
  isAtEnd = true;
  /** Whether the first message here is the oldest in the history. */
  isAtStart = false;

  get first() {
    return this.items[0]?.seq ?? 0;
  }

  get last() {
    return this.items.at(-1)?.seq ?? 0;
  }

  /** Start over with a page of the history. */
  begin(items, { isAtStart, isAtEnd }) {
    this.items = [...items];
    this.isAtStart = isAtStart;
    this.isAtEnd = isAtEnd;
  }

  /** Append newer messages; return those that are new here. */
  append(items) {
    const fresh = items.filter((item) => item.seq > this.last);
    this.items.push(...fresh);
    return fresh;
  }

  /** Prepend older messages; return those that are new here. */
  prepend(items) {
    const fresh = this.items.length ? items.filter((item) => item.seq < this.first) : [...items];
    this.items.unshift(...fresh);
    return fresh;
  }

  /** Remove the oldest messages beyond the limit and return them. */
  trimStart() {
    const cut = this.items.splice(0, Math.max(0, this.items.length - MAX_ITEMS));
    if (cut.length) this.isAtStart = false;
    return cut;
  }

  /** Remove the newest messages beyond the limit and return them. */
  trimEnd() {
    const cut = this.items.splice(MAX_ITEMS);
    if (cut.length) this.isAtEnd = false;
    return cut;
  }
}
