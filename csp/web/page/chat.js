// The conversation: a window on the history that follows what is said, unless somebody scrolls back.

import { get } from "./api.js";
import { byId, set, setText } from "./dom.js";
import { Log } from "./log.js";
import { messageElement, newsElement } from "./message.js";
import { Pacer } from "./pace.js";
import { Ticks } from "./ticks.js";
import { attempt } from "./toast.js";
import { several } from "./words.js";

const PAGE = 60;
/** More lines than this are not added while somebody reads further up. */
const FULL = 600;
const NEAR_PX = 600;
const AT_END_PX = 48;
/** More new lines than this in one frame are a flood: they are not animated, and the browser rests after them. */
const CALM = 8;
/** So many of the newest messages may be in sight as soon as they are drawn. */
const IN_SIGHT = 12;
const NEWS = new Set(["joined", "left", "redacted"]);

export class Chat {
  #room;
  #log = new Log();
  #ticks = new Ticks();
  #elements = new Map();
  #list = byId("log");
  #scroller = byId("log-scroller");
  #isFetching = false;
  #follows = true;
  #top = 0;
  #missed = 0;
  /** What was said or reported since the last frame. */
  #fresh = [];
  #pacer = new Pacer(() => this.#drawFresh());
  #inSight = new IntersectionObserver((entries) => this.#sight(entries), { root: this.#scroller });
  /** Messages whose states are drawn once they are seen. */
  #unseen = new Map();

  /** @param {import("./room.js").Room} room */
  constructor(room) {
    this.#room = room;
    room.said.on((event) => this.#hear(event));
    room.moved.on((event) => this.#ticks.take(event));
    room.news.on((event) => this.#hear(event));
    room.sessionEvent.on((event) => event.type === "mode" && this.#unseal(event.session_id));
    room.viewChanged.on(() => this.load());
    room.gap.on(() => this.load());
    this.#scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    byId("jump").addEventListener("click", () => this.toEnd());
    const sizes = new ResizeObserver(() => this.#follows && this.#goToEnd());
    for (const grows of [this.#scroller, this.#list, byId("busy")]) sizes.observe(grows);
  }

  /** Show the newest messages, or those around one. */
  async load(around = null) {
    const query = around === null ? `limit=${PAGE}` : `limit=${PAGE}&before=${around + PAGE / 2}`;
    const page = await attempt(get(`/history?${query}${this.#filter()}`));
    if (!page) return;
    this.#log.begin(this.#shown(page.items), { isAtStart: page.items.length < PAGE, isAtEnd: around === null });
    this.#redraw(() => this.#log.items.map((item) => this.#element(item)));
    this.#follows = around === null;
    this.#settle();
    if (around !== null) this.#reveal(around);
  }

  #filter() {
    return this.#room.view ? `&session=${encodeURIComponent(this.#room.view)}` : "";
  }

  /** A vote stands in the words of who cast it. */
  #shown(items) {
    return items.filter((item) => item.type !== "vote");
  }

  /** Go to the newest message. */
  async toEnd() {
    this.#follows = true;
    if (!this.#log.isAtEnd) await this.load();
    this.#settle();
  }

  // --- what is said ------------------------------------------------------------------------------

  #hear(event) {
    if (this.#room.view && (NEWS.has(event.type) || event.session_id !== this.#room.view)) return;
    this.#fresh.push(event);
    this.#pacer.wake();
  }

  /** Draw what came since the last frame, at most a page of it; return whether that was much. */
  #drawFresh() {
    const fresh = this.#fresh.splice(0).filter(({ seq }, at, all) => seq > Math.max(this.#log.last, all[at - 1]?.seq ?? 0));
    const said = fresh.filter((event) => !NEWS.has(event.type));
    const isFlood = fresh.length > CALM;
    if (!this.#follows) this.#missed += said.length;
    if (!this.#log.isAtEnd || (!this.#follows && (fresh.length > PAGE || this.#list.children.length > FULL))) {
      // Somebody reads far up: what is new is fetched when they come down.
      if (said.length) this.#log.isAtEnd = false;
      this.#showJump();
      return isFlood;
    }
    if (fresh.length > PAGE) {
      // Nobody can read this much in one frame: the newest is shown, the rest is fetched by scrolling back.
      const newest = fresh.slice(-PAGE);
      this.#log.begin(newest.filter((event) => !NEWS.has(event.type)), { isAtStart: false, isAtEnd: true });
      this.#redraw(() => this.#liveElements(newest, isFlood));
    } else {
      this.#log.append(said);
      this.#list.append(...this.#liveElements(fresh, isFlood));
      if (this.#follows) this.#drop(this.#log.trimStart());
    }
    this.#settle();
    return isFlood;
  }

  #liveElements(events, isFlood) {
    return events.map((event, index) => {
      if (NEWS.has(event.type)) return newsElement(event);
      const element = this.#element(event, { isLive: true, isInSight: index >= events.length - IN_SIGHT });
      if (isFlood) element.classList.remove("fresh");
      return element;
    });
  }

  /** Whatever was sealed in a phase can be read by all when the session goes on. */
  #unseal(session) {
    this.#fresh = this.#fresh.map((event) => (event.session_id === session ? { ...event, sealed: false } : event));
    for (const mark of this.#list.querySelectorAll(`.sealed[data-session="${CSS.escape(session)}"]`)) mark.remove();
  }

  // --- the elements ------------------------------------------------------------------------------

  #element(event, { isLive = false, isInSight = false } = {}) {
    const element = messageElement(event, { isLive });
    this.#elements.set(event.seq, element);
    const ticks = element.querySelector(".ticks");
    if (ticks && isInSight) this.#ticks.show(event, ticks, { isLive });
    else if (ticks) {
      this.#unseen.set(element, { event, isLive });
      this.#inSight.observe(element);
    }
    return element;
  }

  #sight(entries) {
    for (const { target, isIntersecting } of entries) {
      const unseen = isIntersecting && this.#unseen.get(target);
      if (!unseen) continue;
      this.#unseen.delete(target);
      this.#inSight.unobserve(target);
      this.#ticks.show(unseen.event, target.querySelector(".ticks"), unseen);
    }
  }

  #drop(items) {
    for (const item of items) this.#remove(this.#elements.get(item.seq), item);
    // Lines that are no messages go with their surroundings.
    const first = this.#log.first;
    while (this.#list.firstElementChild && Number(this.#list.firstElementChild.dataset.seq) < first) {
      this.#list.firstElementChild.remove();
    }
  }

  #remove(element, item) {
    this.#elements.delete(item.seq);
    this.#ticks.hide(item.id);
    if (!element) return;
    this.#unseen.delete(element);
    this.#inSight.unobserve(element);
    element.remove();
  }

  /** Show the elements of the log, and no others; they are made after those before them are forgotten. */
  #redraw(make) {
    this.#inSight.disconnect();
    this.#unseen.clear();
    this.#elements.clear();
    this.#ticks.clear();
    this.#missed = 0;
    this.#list.replaceChildren(...make());
    set(byId("empty"), { hidden: this.#list.children.length > 0 });
  }

  #reveal(seq) {
    const element = this.#elements.get(seq);
    if (!element) return;
    element.scrollIntoView({ block: "center" });
    element.classList.add("found");
    element.tabIndex = -1;
    element.focus({ preventScroll: true });
    setTimeout(() => element.classList.remove("found"), 3000);
  }

  // --- scrolling ---------------------------------------------------------------------------------

  #settle() {
    set(byId("empty"), { hidden: this.#list.children.length > 0 });
    if (this.#follows) this.#goToEnd();
    this.#showJump();
  }

  #goToEnd() {
    this.#missed = 0;
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }

  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.#scroller;
    const below = scrollHeight - scrollTop - clientHeight;
    // What is new makes the end go away by itself; only who scrolls back wants to read there.
    const isBack = scrollTop < this.#top - 1;
    this.#top = scrollTop;
    this.#follows = this.#log.isAtEnd && (below < AT_END_PX || (this.#follows && !isBack));
    if (this.#follows) this.#missed = 0;
    this.#showJump();
    if (scrollTop < NEAR_PX && !this.#log.isAtStart) this.#fetchOlder();
    else if (below < NEAR_PX && !this.#log.isAtEnd) this.#fetchNewer();
  }

  #showJump() {
    set(byId("jump"), { hidden: this.#follows });
    setText(byId("jump"), this.#missed ? `${several(this.#missed, "new message")} ↓` : "To the newest ↓");
  }

  async #fetchOlder() {
    if (!this.#log.items.length) return;
    await this.#fetch(`before=${this.#log.first}`, (page) => {
      if (page.items.length < PAGE) this.#log.isAtStart = true;
      const height = this.#scroller.scrollHeight;
      const fresh = this.#log.prepend(this.#shown(page.items));
      this.#list.prepend(...fresh.map((item) => this.#element(item)));
      this.#scroller.scrollTop += this.#scroller.scrollHeight - height;
      for (const item of this.#log.trimEnd()) this.#remove(this.#elements.get(item.seq), item);
    });
  }

  async #fetchNewer() {
    await this.#fetch(`after=${this.#log.last}`, (page) => {
      const fresh = this.#log.append(this.#shown(page.items));
      this.#list.append(...fresh.map((item) => this.#element(item)));
      if (page.items.length < PAGE) this.#log.isAtEnd = true;
      const height = this.#scroller.scrollHeight;
      this.#drop(this.#log.trimStart());
      this.#scroller.scrollTop -= height - this.#scroller.scrollHeight;
    });
  }

  async #fetch(place, take) {
    if (this.#isFetching) return;
    this.#isFetching = true;
    set(this.#scroller, { "aria-busy": "true" });
    const page = await attempt(get(`/history?limit=${PAGE}&${place}${this.#filter()}`));
    if (page) take(page);
    set(this.#scroller, { "aria-busy": "false" });
    this.#isFetching = false;
    if (page) this.#scrolled();
  }
}
