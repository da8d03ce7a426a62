// A window on the history: a run of messages without a gap, never more than so many.

/** What stays on the page; more is fetched again when somebody scrolls there. */
export const MAX_ITEMS = 400;

export class Log {
  /** @type {any[]} oldest first */
  items = [];
  /** Whether the newest message there is, is the last one here. */
  isAtEnd = true;
  /** Whether the oldest message there is, is the first one here. */
  isAtStart = false;

  get first() {
    return this.items[0]?.seq ?? 0;
  }

  get last() {
    return this.items.at(-1)?.seq ?? 0;
  }

  /** Start again with a page of the history. */
  begin(items, { isAtStart, isAtEnd }) {
    this.items = [...items];
    this.isAtStart = isAtStart;
    this.isAtEnd = isAtEnd;
  }

  /** Take newer messages; return those that were not here yet. */
  append(items) {
    const fresh = items.filter((item) => item.seq > this.last);
    this.items.push(...fresh);
    return fresh;
  }

  /** Take older messages; return those that were not here yet. */
  prepend(items) {
    const fresh = this.items.length ? items.filter((item) => item.seq < this.first) : [...items];
    this.items.unshift(...fresh);
    return fresh;
  }

  /** Let go of the oldest that are too many; return them. */
  trimStart() {
    const cut = this.items.splice(0, Math.max(0, this.items.length - MAX_ITEMS));
    if (cut.length) this.isAtStart = false;
    return cut;
  }

  /** Let go of the newest that are too many; return them. */
  trimEnd() {
    const cut = this.items.splice(MAX_ITEMS);
    if (cut.length) this.isAtEnd = false;
    return cut;
  }
}
