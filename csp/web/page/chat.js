// The conversation: a window on the history that follows what is said, unless somebody scrolls back.

import { get } from "./api.js";
import { byId, set, setText } from "./dom.js";
import { Log } from "./log.js";
import { messageElement, newsElement } from "./message.js";
import { Ticks } from "./ticks.js";
import { attempt } from "./toast.js";
import { several } from "./words.js";

const PAGE = 60;
const NEAR_PX = 600;
const AT_END_PX = 48;

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
  #inSight = new IntersectionObserver((entries) => this.#sight(entries), { root: this.#scroller });
  /** Messages whose states have to be asked for once they are seen. */
  #unasked = new Map();

  /** @param {import("./room.js").Room} room */
  constructor(room) {
    this.#room = room;
    room.said.on((event) => this.#hear(event));
    room.moved.on((event) => this.#ticks.take(event));
    room.news.on((event) => this.#tellNews(event));
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
    this.#redraw();
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
    if (this.#room.view && event.session_id !== this.#room.view) return;
    if (!this.#log.isAtEnd || (!this.#follows && this.#isFull())) {
      // Somebody reads far up: what is new is fetched when they come down.
      this.#log.isAtEnd = false;
      this.#miss();
      return;
    }
    if (!this.#log.append([event]).length) return;
    this.#list.append(this.#element(event, true));
    if (this.#follows) this.#drop(this.#log.trimStart());
    else this.#miss();
    this.#settleSoon();
  }

  #isFull() {
    return this.#list.children.length > 600;
  }

  #miss() {
    this.#missed += 1;
    this.#showJump();
  }

  #tellNews(event) {
    if (!this.#log.isAtEnd || this.#room.view) return;
    this.#list.append(newsElement(event));
    this.#settleSoon();
  }

  /** Whatever was sealed in a phase can be read by all when the session goes on. */
  #unseal(session) {
    for (const mark of this.#list.querySelectorAll(`.sealed[data-session="${CSS.escape(session)}"]`)) mark.remove();
  }

  // --- the elements ------------------------------------------------------------------------------

  #element(event, isLive) {
    const element = messageElement(event, { isLive });
    this.#elements.set(event.seq, element);
    const ticks = element.querySelector(".ticks");
    if (ticks && isLive) this.#ticks.show(event, ticks, { isLive });
    else if (ticks) {
      this.#unasked.set(element, event);
      this.#inSight.observe(element);
    }
    return element;
  }

  #sight(entries) {
    for (const { target, isIntersecting } of entries) {
      const event = isIntersecting && this.#unasked.get(target);
      if (!event) continue;
      this.#unasked.delete(target);
      this.#inSight.unobserve(target);
      this.#ticks.show(event, target.querySelector(".ticks"), { isLive: false });
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
    this.#unasked.delete(element);
    this.#inSight.unobserve(element);
    element.remove();
  }

  #redraw() {
    for (const element of this.#unasked.keys()) this.#inSight.unobserve(element);
    this.#unasked.clear();
    this.#elements.clear();
    this.#missed = 0;
    this.#list.replaceChildren(...this.#log.items.map((item) => this.#element(item, false)));
    set(byId("empty"), { hidden: this.#log.items.length > 0 });
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

  #settling = 0;

  #settleSoon() {
    this.#settling ||= requestAnimationFrame(() => this.#settle());
  }

  #settle() {
    this.#settling = 0;
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
      this.#list.prepend(...fresh.map((item) => this.#element(item, false)));
      this.#scroller.scrollTop += this.#scroller.scrollHeight - height;
      for (const item of this.#log.trimEnd()) this.#remove(this.#elements.get(item.seq), item);
    });
  }

  async #fetchNewer() {
    await this.#fetch(`after=${this.#log.last}`, (page) => {
      const fresh = this.#log.append(this.#shown(page.items));
      this.#list.append(...fresh.map((item) => this.#element(item, false)));
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
