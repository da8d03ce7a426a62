// Completion at the caret: @names, !names, /commands and {name.last}.

import { h, set, swap } from "./dom.js";

const MAX_SHOWN = 8;
const AT_CARET = /(?:^|\s)([@!/{][A-Za-z0-9.-]*)$/;

export class Completion {
  #input;
  #list;
  #words;
  #found = [];
  #chosen = 0;

  /**
   * @param {HTMLTextAreaElement} input  @param {HTMLElement} list
   * @param {() => Record<string, {word: string, about: string}[]>} words by the sign they begin with
   */
  constructor(input, list, words) {
    this.#input = input;
    this.#list = list;
    this.#words = words;
    input.addEventListener("input", () => this.#look());
    // Immediately, so that a user who returns and types sees the list for the new text.
    input.addEventListener("blur", () => this.close());
  }

  #prefix() {
    const before = this.#input.value.slice(0, this.#input.selectionStart);
    const found = AT_CARET.exec(before)?.[1] ?? "";
    // A command is recognised only at the very start; elsewhere a slash is part of a path.
    return found.startsWith("/") && before !== found ? "" : found;
  }

  #look() {
    const prefix = this.#prefix().toLowerCase();
    const all = this.#words()[prefix[0]] ?? [];
    this.#found = all.filter(({ word }) => word.startsWith(prefix) && word !== prefix).slice(0, MAX_SHOWN);
    this.#chosen = 0;
    this.#draw();
  }

  #draw() {
    swap(this.#list, ...this.#found.map((item, index) => this.#option(item, index)));
    set(this.#list, { hidden: !this.#found.length });
    set(this.#input, { "aria-activedescendant": this.#found.length ? `completion-${this.#chosen}` : null });
  }

  #option({ word, about }, index) {
    return h(
      "li",
      {
        id: `completion-${index}`,
        role: "option",
        "aria-selected": String(index === this.#chosen),
        // The pointer must not move the focus away from the text field.
        on: { mousedown: (event) => event.preventDefault(), click: () => this.#take(index) },
      },
      h("b", {}, word),
      h("span", {}, about),
    );
  }

  #take(index) {
    const at = this.#input.selectionStart;
    this.#input.setRangeText(this.#found[index].word, at - this.#prefix().length, at, "end");
    this.close();
    this.#input.dispatchEvent(new Event("input"));
  }

  /** Handle a key if it has a meaning for the list; return whether it did. */
  takes(event) {
    if (!this.#found.length) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      this.#chosen = (this.#chosen + step + this.#found.length) % this.#found.length;
      this.#draw();
    } else if (event.key === "Tab" && !event.shiftKey) this.#take(this.#chosen);
    else if (event.key === "Escape") this.close();
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  }

  close() {
    this.#found = [];
    this.#draw();
  }
}
