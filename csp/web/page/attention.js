// The items that need a person, above the composer: the same list as in the pane and the shell.

import { act } from "./api.js";
import { catalogue } from "./catalogue.js";
import { runCommand } from "./commands.js";
import { button, byId, h, set, swap } from "./dom.js";
import { shortened, textElement } from "./text.js";
import { attempt } from "./toast.js";
import { clock, hueOf } from "./words.js";

const LONGEST = 2000;
/** Kinds whose detail is a command or a question on a screen, which keeps its line breaks. */
const VERBATIM = new Set(["approval", "dialog", "trust", "login", "plan"]);
/** The number of answers with their own buttons; the others are one press away. */
const FIRST = new Set(["y", "n"]);
const MOST_AT_ONCE = 3;
const FOCUS = /^\/focus @?(\S+)$/;
const ADDRESS = /^@(\S+)$/;
const COMMAND = /^\/([a-z]+)/;

/**
 * @param {import("./room.js").Room} room
 * @param {{look: (agent: string) => void, write: (to: string) => void}} ways `look` shows an agent's
 *   screen, `write` addresses the composer to an agent
 */
export function startAttention(room, ways) {
  const list = new AttentionList(room, ways);
  room.attentionChanged.on(() => list.draw());
  list.draw();
}

class AttentionList {
  #room;
  #ways;
  /** The elements by the id of their item, each with its current content. */
  #shown = new Map();
  /** News that the user has dismissed. */
  #hidden = new Set();

  constructor(room, ways) {
    this.#room = room;
    this.#ways = ways;
  }

  /** Redraw only changed items, so that the others stay in place under the user's pointer. */
  draw() {
    const listed = this.#room.attention.filter((item) => !this.#hidden.has(keyOf(item)));
    // Items that wait for an answer are shown before news.
    const items = [...listed.filter((item) => !isNews(item)), ...listed.filter(isNews)];
    const before = this.#shown;
    this.#shown = new Map(items.map((item) => [item.id, this.#kept(before.get(item.id), item)]));
    const place = byId("attention-list");
    const focused = place.contains(document.activeElement) ? document.activeElement.id : "";
    for (const [id, { element }] of before) if (this.#shown.get(id)?.element !== element) element.remove();
    [...this.#shown.values()].forEach(({ element }, at) => {
      if (place.children[at] !== element) place.insertBefore(element, place.children[at] ?? null);
    });
    if (focused) document.getElementById(focused)?.focus();
    set(byId("attention"), { hidden: !items.length });
  }

  #kept(shown, item) {
    const key = JSON.stringify(item);
    return shown?.key === key ? shown : { key, element: this.#element(item) };
  }

  #element(item) {
    const element = h("li", { class: "need", data: { need: item.id, kind: item.kind, level: item.level ?? "action", ...(item.agent && { agent: item.agent }) }, vars: { hue: hueOf(item.agent || item.id) } },
      h("p", { class: "need-head" }, textElement("b", { dir: "auto" }, item.title), h("time", { datetime: new Date(item.since * 1000).toISOString() }, clock(item.since))),
      item.detail && detail(item),
      this.#answers(item));
    element.addEventListener("keydown", (event) => this.#key(event, item, element));
    return element;
  }

  /** Give the answer whose key is pressed while the focus is on its item. */
  #key(event, item, element) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const answer = item.answers.find((one) => one.key === event.key && canGive(one));
    if (!answer) return;
    event.preventDefault();
    this.#give(item, answer, element);
  }

  #answers(item) {
    const place = h("div", { class: "buttons" });
    const answers = item.answers.filter(canGive);
    const [first, rest] = inTwo(answers);
    const make = (answer) => this.#button(item, answer, item.answers.indexOf(answer));
    const all = rest.length > 0 && button("All choices…", () => {
      swap(place, ...answers.map(make));
      (place.children[first.length] ?? place.firstChild).focus();
    }, { class: "small", id: `need-${item.id}-all`, "aria-label": `All choices: ${item.title}` });
    const hide = isNews(item) && button("Hide", () => {
      this.#hidden.add(keyOf(item));
      this.draw();
    }, { class: "small", id: `need-${item.id}-hide`, "aria-label": `Hide: ${item.title}` });
    place.append(...[...first.map(make), all, hide].filter(Boolean));
    return place;
  }

  #button(item, answer, at) {
    const kind = { y: " good", n: " bad" }[answer.key] ?? "";
    return button(shortened(answer.label, 80), ({ target }) => this.#give(item, answer, target.closest(".need")), {
      class: `small${kind}`, id: `need-${item.id}-${at}`, "aria-label": `${answer.label}: ${item.title}`, "aria-keyshortcuts": answer.key,
    });
  }

  /** Give an answer by sending its line, as if the user had typed it. */
  async #give(item, answer, element) {
    const [, screen] = FOCUS.exec(answer.line) ?? [];
    if (screen) return this.#ways.look(screen);
    const [, to] = ADDRESS.exec(answer.line) ?? [];
    if (to) return this.#ways.write(to);
    if (element.getAttribute("aria-busy") === "true") return undefined;
    set(element, { "aria-busy": "true" });
    const done = await attempt(act("/line", { line: answer.line, thread: this.#room.thread ?? undefined }));
    if (done?.kind === "command") await runCommand(done.name, done.rest ?? "", this.#room);
    set(element, { "aria-busy": null });
    this.#room.refresh();
    return undefined;
  }
}

const isNews = (item) => item.level === "info";

/** Answers that only the pane supports are not offered here. */
const canGive = ({ line }) => !catalogue.pane_commands.some(({ name }) => name === COMMAND.exec(line)?.[1]);

/** A repetition of dismissed news is dismissed too, until it has a different cause. */
const keyOf = ({ id, since }) => `${id} ${since}`;

/** If there are many answers, show yes and no, and the others after a press of a third button. */
function inTwo(answers) {
  if (answers.length <= MOST_AT_ONCE) return [answers, []];
  const first = answers.filter(({ key }) => FIRST.has(key));
  return first.length ? [first, answers.filter((answer) => !first.includes(answer))] : [answers, []];
}

function detail(item) {
  const isVerbatim = VERBATIM.has(item.kind);
  return textElement(isVerbatim ? "pre" : "p", { class: "asked", dir: "auto", ...(isVerbatim && { tabindex: "0" }) }, shortened(item.detail, LONGEST));
}
