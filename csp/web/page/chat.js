// The conversation: a window on the history that follows new messages unless the user scrolls back.

import { get } from "./api.js";
import { byId, h, set, setText } from "./dom.js";
import { Log } from "./log.js";
import { messageElement, newsElement } from "./message.js";
import { Pacer } from "./pace.js";
import { showTab, tabChanged } from "./tabs.js";
import { Ticks } from "./ticks.js";
import { attempt } from "./toast.js";
import { several } from "./words.js";

const PAGE = 60;
/** No lines beyond this number are added while the user reads further up. */
const FULL = 600;
const NEAR_PX = 600;
const AT_END_PX = 48;
/** More new lines than this in one frame are a flood: they are not animated, and drawing pauses after them. */
const CALM = 8;
/** The number of newest messages that may be visible as soon as they are drawn. */
const IN_SIGHT = 12;
const NEWS = new Set(["joined", "left", "redacted"]);
const SEEN = "csp-seen";

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
  /** The line above messages that arrived unseen, and whether they are still unread. */
  #divider = h("li", { class: "unread" }, h("span", {}, "New"));
  #isUnread = false;
  /** The last message that the user has seen. */
  #seen = 0;
  /** Messages and news since the last frame. */
  #fresh = [];
  #pacer = new Pacer(() => this.#drawFresh());
  #inSight = new IntersectionObserver((entries) => this.#sight(entries), { root: this.#scroller });
  /** Messages whose states are drawn once they become visible. */
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
    document.addEventListener("visibilitychange", () => this.#look());
    tabChanged.on(() => this.#look());
    this.#list.addEventListener("keydown", (event) => this.#move(event));
    this.#list.addEventListener("focusin", ({ target }) => target.matches(".message") && this.#reach(target));
    const sizes = new ResizeObserver(() => this.#follows && this.#goToEnd());
    for (const grows of [this.#scroller, this.#list, byId("busy")]) sizes.observe(grows);
  }

  /** Show the newest messages, or those around a given one. */
  async load(around = null) {
    const query = around === null ? `limit=${PAGE}` : `limit=${PAGE}&before=${around + PAGE / 2}`;
    const page = await attempt(get(`/history?${query}${this.#filter()}`));
    if (!page) return;
    this.#log.begin(this.#shown(page.items), { isAtStart: page.items.length < PAGE, isAtEnd: around === null });
    this.#redraw(() => this.#log.items.map((item) => this.#element(item)));
    this.#follows = around === null;
    if (around === null) this.#divideSeen();
    this.#settle();
    if (around !== null) this.#reveal(around);
  }

  #filter() {
    return this.#room.view ? `&session=${encodeURIComponent(this.#room.view)}` : "";
  }

  /** Votes are left out, because the voter's message contains them. */
  #shown(items) {
    return items.filter((item) => item.type !== "vote");
  }

  /** The message shown by an element of the conversation. */
  messageOf(element) {
    return this.#log.items.find((item) => item.seq === Number(element.dataset.seq));
  }

  /** Show a message, loading its surroundings if necessary. */
  async show(seq) {
    showTab("chat");
    if (this.#elements.has(seq)) this.#reveal(seq);
    else await this.load(seq);
  }

  /** Go to the newest message. */
  async toEnd() {
    this.#follows = true;
    if (!this.#log.isAtEnd) await this.load();
    this.#settle();
  }

  // --- new events --------------------------------------------------------------------------------

  #hear(event) {
    if (this.#room.view && (NEWS.has(event.type) || event.session_id !== this.#room.view)) return;
    this.#fresh.push(event);
    this.#pacer.wake();
  }

  /** Draw at most one page of the events since the last frame; return whether there were many. */
  #drawFresh() {
    const fresh = this.#fresh.splice(0).filter(({ seq }, at, all) => seq > Math.max(this.#log.last, all[at - 1]?.seq ?? 0));
    const said = fresh.filter((event) => !NEWS.has(event.type));
    const isFlood = fresh.length > CALM;
    if (!this.#follows) this.#missed += said.length;
    if (!this.#log.isAtEnd || (!this.#follows && (fresh.length > PAGE || this.#list.children.length > FULL))) {
      // The user is reading far up: new messages are fetched when they scroll down.
      if (said.length) this.#log.isAtEnd = false;
      this.#showJump();
      return isFlood;
    }
    if (fresh.length > PAGE) {
      // Too much to read in one frame: only the newest are shown; scrolling back fetches the rest.
      const newest = fresh.slice(-PAGE);
      this.#log.begin(newest.filter((event) => !NEWS.has(event.type)), { isAtStart: false, isAtEnd: true });
      this.#redraw(() => this.#liveElements(newest, isFlood));
      this.#divide(said);
    } else {
      this.#log.append(said);
      this.#list.append(...this.#liveElements(fresh, isFlood));
      this.#divide(said);
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

  /** Messages sealed in a phase become readable for everyone when the session continues. */
  #unseal(session) {
    this.#fresh = this.#fresh.map((event) => (event.session_id === session ? { ...event, sealed: false } : event));
    for (const mark of this.#list.querySelectorAll(`.sealed[data-session="${CSS.escape(session)}"]`)) mark.remove();
  }

  // --- unread messages ---------------------------------------------------------------------------

  get #isLooking() {
    return this.#follows && !document.hidden && this.#list.checkVisibility();
  }

  /** Record that the newest message has been seen. */
  #look() {
    if (!this.#isLooking || !this.#log.isAtEnd) return;
    this.#isUnread = false;
    this.#keepSeen(this.#log.last);
  }

  #keepSeen(seq) {
    if (seq <= this.#seen) return;
    this.#seen = seq;
    localStorage.setItem(`${SEEN}-${this.#room.name}`, String(seq));
  }

  /** Draw the line above the first of these messages that arrived unseen. */
  #divide(said) {
    if (said.some((event) => event.sender === "human")) {
      // A user who replies has read the messages above.
      this.#divider.remove();
      this.#isUnread = false;
    }
    const first = said.find((event) => event.sender !== "human" && event.type !== "system" && this.#elements.has(event.seq));
    if (first && !this.#isLooking && !this.#isUnread) this.#putDivider(first.seq);
    this.#look();
  }

  /** Draw the line above messages that arrived since the last visit. */
  #divideSeen() {
    const seen = Math.max(this.#seen, Number(localStorage.getItem(`${SEEN}-${this.#room.name}`) ?? 0));
    const first = this.#log.items.find((event) => event.seq > seen && event.sender !== "human" && event.type !== "system");
    if (seen && first && first !== this.#log.items[0]) this.#putDivider(first.seq);
    this.#look();
  }

  #putDivider(seq) {
    this.#divider.dataset.seq = seq;
    this.#elements.get(seq).before(this.#divider);
    this.#isUnread = true;
  }

  // --- the keyboard ------------------------------------------------------------------------------

  /** Only one message can be reached by Tab: the last focused one, or else the newest. */
  #reach(element) {
    const wanted = element?.matches(".message") ? element : this.#list.querySelector(".message:nth-last-child(1 of .message)");
    for (const other of this.#list.querySelectorAll(".message[tabindex='0']")) if (other !== wanted) other.tabIndex = -1;
    if (wanted) wanted.tabIndex = 0;
  }

  /** Move between messages with the arrow keys. */
  #move(event) {
    const step = { ArrowUp: "previousElementSibling", ArrowDown: "nextElementSibling" }[event.key];
    if (!step || !event.target.matches(".message")) return;
    let next = event.target[step];
    while (next && !next.matches(".message")) next = next[step];
    if (!next) return;
    event.preventDefault();
    next.focus();
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
    // Lines that are not messages are removed with their surroundings.
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

  /** Show only the elements of the log; they are created after the previous ones are discarded. */
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
    element.tabIndex = 0;
    element.focus({ preventScroll: true });
    setTimeout(() => element.classList.remove("found"), 3000);
  }

  // --- scrolling ---------------------------------------------------------------------------------

  #settle() {
    set(byId("empty"), { hidden: this.#list.children.length > 0 });
    if (this.#follows) this.#goToEnd();
    this.#reachNewest();
    this.#showJump();
  }

  /** Make the newest message reachable by Tab, unless the focus is on another one. */
  #reachNewest() {
    if (!this.#list.contains(document.activeElement)) this.#reach(null);
  }

  #goToEnd() {
    this.#missed = 0;
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }

  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.#scroller;
    const below = scrollHeight - scrollTop - clientHeight;
    // New messages also increase the distance to the end; only scrolling back stops following.
    const isBack = scrollTop < this.#top - 1;
    this.#top = scrollTop;
    this.#follows = this.#log.isAtEnd && (below < AT_END_PX || (this.#follows && !isBack));
    if (this.#follows) this.#missed = 0;
    this.#look();
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
