// The whiteboard: its notes, a search, new notes, and summaries.

import { act, get, post } from "./api.js";
import { byId, changes, h, offer, set, setText, swap } from "./dom.js";
import { save } from "./export.js";
import { showMarkdown } from "./markdown.js";
import { showTab, tabChanged } from "./tabs.js";
import { attempt, tell } from "./toast.js";
import { hueOf, moment, several } from "./words.js";
import { Looker } from "./topic.js";

const PAGE = 50;
const HITS = 20;
const REST_MS = 400;
const ROOM = "room";
const HOW = { exact: "found by its exact name", words: "found by its words", meaning: "found by its meaning" };

export class Board {
  #room;
  #isOpen = false;
  /** The notes on display: a page, or the hits of a search. */
  #searched = "";
  #notes = [];
  #isNew = changes();
  #looker = new Looker(() => this.#look(), REST_MS);

  /** @param {import("./room.js").Room} room */
  constructor(room) {
    this.#room = room;
    room.noted.on(() => this.#wake());
    room.sessionsChanged.on(() => this.#offerBoards());
    room.agentsChanged.on(() => this.#offerWriters());
    room.statusChanged.on(() => room.status === "live" && this.#wake());
    tabChanged.on((tab) => this.#open(tab === "board"));
    for (const name of ["session", "kind"]) byId(`board-${name}`).addEventListener("change", () => this.#choose());
    byId("board-search").addEventListener("submit", (event) => this.#search(event));
    byId("board-add").addEventListener("submit", (event) => this.#add(event));
    byId("board-older").addEventListener("click", () => this.#older());
    byId("board-export").addEventListener("click", () => this.#export());
    byId("board-sum").addEventListener("submit", (event) => this.#sum(event));
  }

  get #session() {
    return byId("board-session").value;
  }

  #open(isOpen) {
    this.#isOpen = isOpen;
    this.#wake();
  }

  #wake() {
    if (this.#isOpen) this.#looker.wake();
  }

  #choose() {
    this.#notes = [];
    this.#wake();
  }

  // --- reading ---------------------------------------------------------------------------------

  async #look() {
    const asked = this.#searched;
    if (asked) return this.#draw((await get(`/board/search?${this.#query({ q: asked, limit: HITS })}`)).items, asked);
    const page = await get(`/board?${this.#query({ limit: PAGE })}`);
    const oldest = page.items[0]?.id;
    // Older notes that were already loaded stay above the newest page.
    const older = this.#notes.slice(0, Math.max(0, this.#notes.findIndex((note) => note.id === oldest)));
    this.#notes = [...older, ...page.items];
    if (!this.#searched) this.#draw(this.#notes.map((note) => ({ note })).reverse(), "");
  }

  #query(fields) {
    const query = new URLSearchParams(fields);
    if (this.#session) query.set("session", this.#session);
    const kind = byId("board-kind").value;
    if (kind) query.set("kind", kind);
    return query;
  }

  async #older() {
    const before = Number(this.#notes[0]?.id.slice(2));
    const page = before && (await attempt(get(`/board?${this.#query({ limit: PAGE, before })}`)));
    if (!page) return;
    this.#notes = [...page.items, ...this.#notes];
    this.#draw(this.#notes.map((note) => ({ note })).reverse(), "");
    if (!page.items.length) tell("there is nothing older");
  }

  #search(event) {
    event.preventDefault();
    this.#searched = byId("board-q").value.trim();
    this.#wake();
  }

  // --- drawing ---------------------------------------------------------------------------------

  #draw(items, asked) {
    if (!this.#isNew([asked, items])) return;
    swap(byId("board-notes"), ...items.map(noteElement));
    const none = asked ? "No notes match." : "The board is empty.";
    setText(byId("board-state"), items.length ? stateWords(items.length, asked) : none);
    set(byId("board-older"), { hidden: Boolean(asked) || items.length < PAGE });
  }

  #offerBoards() {
    const named = this.#room.sessions.map(({ id, mode, topic }) => [id, `${id} · ${mode} ${topic ?? ""}`.slice(0, 60)]);
    offer(byId("board-session"), [["", "All boards"], [ROOM, "The room's own"], ...named]);
  }

  #offerWriters() {
    const online = this.#room.agents.filter((agent) => agent.online);
    offer(byId("board-by"), online.map((agent) => [agent.id]));
    set(byId("board-sum"), { hidden: !online.length });
  }

  // --- actions ---------------------------------------------------------------------------------

  async #add(event) {
    event.preventDefault();
    const field = byId("board-text");
    const tags = byId("board-tags").value.split(/[\s,]+/).filter(Boolean);
    if (!field.value.trim()) {
      field.focus();
      return;
    }
    const body = { text: field.value, tags, ...(this.#session && { session: this.#session }) };
    if ((await attempt(act("/board", body))) === null) return;
    field.value = "";
    this.#searched = byId("board-q").value = "";
    this.#wake();
  }

  async #sum(event) {
    event.preventDefault();
    const by = byId("board-by").value;
    const asked = await attempt(post("/board/summarise", { by, ...(this.#session && { session: this.#session }) }));
    if (asked) tell(`${by} was asked to sum up ${several(asked.stands_for.length, "note")}`);
  }

  async #export() {
    const query = this.#session ? `?session=${encodeURIComponent(this.#session)}` : "";
    const answer = await attempt(get(`/board/export${query}`));
    if (!answer) return;
    const text = answer.files.map((file) => `==> ${file.path} <==\n${file.text}\n`).join("\n");
    save(`whiteboard-${this.#session || "all"}.txt`, text, "text/plain");
  }
}

/** Show the board with the hits of a search. */
export function openBoard(text) {
  showTab("board");
  byId("board-q").value = text;
  byId("board-search").requestSubmit();
  byId("board-q").focus();
  return true;
}

const stateWords = (number, asked) => (asked ? `${several(number, "note")} found, the best first` : `${several(number, "note")}, the newest first`);

function noteElement({ note, how }) {
  const body = h("div", { class: "body", dir: "auto" });
  showMarkdown(body, note.id, note.text);
  const marks = [
    note.kind !== "note" && note.kind,
    note.session !== ROOM && note.session,
    ...note.tags.map((tag) => `#${tag}`),
    how && HOW[how],
    note.stands_for?.length && `stands for ${several(note.stands_for.length, "note")}`,
  ];
  return h("li", { class: "note", data: { kind: note.kind, note: note.id }, vars: { hue: hueOf(note.author) } },
    h("header", { class: "message-head" },
      h("b", { class: "name" }, note.author === "human" ? "you" : note.author),
      ...marks.filter(Boolean).map((mark) => h("span", { class: "mark" }, mark)),
      h("span", { class: "mark" }, `no. ${note.idx}`),
      h("time", { datetime: new Date(note.ts * 1000).toISOString() }, moment(note.ts))),
    body);
}
