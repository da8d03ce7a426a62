// The agents' screens, live as long as they are in view.

import { byId, h, offer, set, setText, swap } from "./dom.js";
import { tabChanged } from "./tabs.js";
import { agentWord, hueOf } from "./words.js";

const ALL = "";

export class Screens {
  #room;
  #chosen = ALL;
  #views = new Map();
  #isOpen = false;

  /** @param {import("./room.js").Room} room */
  constructor(room) {
    this.#room = room;
    room.agentsChanged.on(() => this.#isOpen && this.#arrange());
    room.live.on((live) => live.screen && this.#views.get(live.agent)?.show(live.screen));
    tabChanged.on((tab) => this.#open(tab === "screens"));
    document.addEventListener("visibilitychange", () => this.#open(document.body.dataset.tab === "screens"));
    byId("screen-choice").addEventListener("change", (event) => this.choose(event.target.value));
    byId("screens-all").addEventListener("click", () => {
      this.choose(ALL);
      byId("screen-choice").focus();
    });
  }

  /** Show the screen of one agent, or all screens. */
  choose(agent) {
    this.#chosen = agent;
    if (this.#isOpen) this.#arrange();
  }

  #open(isOpen) {
    this.#isOpen = isOpen && !document.hidden;
    this.#arrange();
  }

  #arrange() {
    const ids = this.#room.agents.map((agent) => agent.id);
    const choice = byId("screen-choice");
    offer(choice, [[ALL, "All screens"], ...ids.map((id) => [id])]);
    choice.value = ids.includes(this.#chosen) ? this.#chosen : ALL;
    const wanted = this.#isOpen ? ids.filter((id) => this.#chosen === ALL || id === this.#chosen) : [];
    for (const id of [...this.#views.keys()].filter((one) => !wanted.includes(one))) this.#end(id);
    for (const id of wanted) if (!this.#views.has(id)) this.#begin(id);
    const isOne = wanted.length === 1;
    set(byId("screens"), { "data-one": String(isOne) });
    set(byId("screens-all"), { hidden: choice.value === ALL });
    for (const id of wanted) {
      this.#views.get(id).setState(this.#room.agent(id));
      this.#views.get(id).follow();
    }
  }

  #begin(id) {
    const view = new ScreenView(id, () => this.choose(this.#chosen === id ? ALL : id));
    this.#views.set(id, view);
    byId("screens").append(view.element);
    this.#room.watch(id);
  }

  #end(id) {
    this.#room.unwatch(id);
    this.#views.get(id).element.remove();
    this.#views.delete(id);
  }
}

class ScreenView {
  #rows = [];
  #shown = [];
  #last = 0;
  #scrolled = 0;
  #title = h("button", { type: "button", class: "screen-title", title: "Show this screen alone, or all again" });
  #screen;

  /** @param {string} id  @param {() => void} choose toggles between only this screen and all screens */
  constructor(id, choose) {
    this.id = id;
    this.#title.addEventListener("click", choose);
    this.#screen = h("pre", { class: "screen", tabindex: "0", "aria-label": `Screen of ${id}` });
    this.element = h("figure", { class: "screen-view", vars: { hue: hueOf(id) } }, h("figcaption", {}, this.#title), this.#screen);
    // A click on a small screen enlarges it; in a large screen, it selects text.
    this.#screen.addEventListener("click", () => this.element.parentElement?.dataset.one === "false" && choose());
  }

  setState(agent) {
    const none = agent.online ? "waiting for its screen…" : "it is offline";
    setText(this.#title, `${this.id} · ${agentWord(agent.state)}`);
    if (!this.#rows.length) setText(this.#screen, none);
  }

  /** Draw only the rows that have changed. */
  show(screen) {
    const rows = screen.rows;
    if (!this.#rows.length) swap(this.#screen);
    while (this.#rows.length < rows.length) {
      const row = h("div", { class: "row" });
      this.#rows.push(row);
      this.#screen.append(row);
    }
    for (const row of this.#rows.splice(rows.length)) row.remove();
    this.#shown.length = rows.length;
    rows.forEach((runs, index) => this.#showRow(index, runs, screen.cursor?.[0] === index ? screen.cursor[1] : -1));
    this.#screen.style.setProperty("--cols", screen.cols);
    this.#last = Math.max(rows.findLastIndex((runs) => runs.some(([text]) => text.trim())), screen.cursor?.[0] ?? 0);
    this.follow();
  }

  /** Scroll to the last row with content, where the agent works, unless the user has scrolled. */
  follow() {
    const row = this.#rows[this.#last];
    if (!row || this.#screen.scrollTop !== this.#scrolled) return;
    this.#screen.scrollTop += row.getBoundingClientRect().bottom - this.#screen.getBoundingClientRect().bottom;
    this.#scrolled = this.#screen.scrollTop;
  }

  #showRow(index, runs, cursor) {
    const key = JSON.stringify([runs, cursor]);
    if (this.#shown[index] === key) return;
    this.#shown[index] = key;
    swap(this.#rows[index], ...withCursor(runs, cursor).map(runElement));
    if (!runs.length) this.#rows[index].append("\u00a0");
  }
}

/** Split the runs so that the cell under the cursor has its own run. */
function withCursor(runs, column) {
  if (column < 0) return runs;
  const out = [];
  let at = 0;
  for (const [text, style = {}] of runs) {
    const letters = [...text];
    const place = column - at;
    if (place >= 0 && place < letters.length) {
      out.push([letters.slice(0, place).join(""), style], [letters[place], { ...style, cursor: true }]);
      out.push([letters.slice(place + 1).join(""), style]);
    } else out.push([text, style]);
    at += letters.length;
  }
  if (column >= at) out.push([" ".repeat(column - at), {}], [" ", { cursor: true }]);
  return out.filter(([text]) => text);
}

const FLAGS = ["bold", "faint", "italic", "underline", "cursor"];

function runElement([text, style = {}]) {
  const element = h("span", { class: FLAGS.filter((flag) => style[flag]).join(" ") || null }, text);
  const [fg, bg] = style.reverse ? [style.bg ?? "back", style.fg ?? "front"] : [style.fg, style.bg];
  if (fg) element.style.color = colour(fg);
  if (bg) element.style.backgroundColor = colour(bg);
  return element;
}

const BASE = [
  "#1d1f21", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d0d3d8",
  "#7f848e", "#ff8a92", "#b5e08d", "#ffd98a", "#82c7ff", "#dd9bf0", "#7fd8e3", "#ffffff",
];

/** A colour from a frame, such as "246" or "#afafaf", in CSS notation. */
export function colour(name) {
  if (name === "front") return "var(--screen-text)";
  if (name === "back") return "var(--screen-back)";
  if (/^#[0-9a-f]{6}$/i.test(name)) return name;
  const index = Number(name);
  if (!Number.isInteger(index) || index < 0 || index > 255) return "inherit";
  if (index < 16) return BASE[index];
  if (index > 231) return grey(8 + (index - 232) * 10);
  const step = (part) => (part ? 55 + part * 40 : 0);
  const cube = index - 16;
  return `rgb(${step(Math.floor(cube / 36))}, ${step(Math.floor(cube / 6) % 6)}, ${step(cube % 6)})`;
}

const grey = (value) => `rgb(${value}, ${value}, ${value})`;
