// The modes, states, reasons, notices and commands, as described by the gateway.

import { get } from "./api.js";

/**
 * @typedef {{id: string, name: string, chip: string, about: string, unit: string, rounds: number,
 *            fewest: number, most: number | null, options: string[]}} ModeEntry
 */

/** Loaded once, before anything is drawn. */
export const catalogue = {
  /** @type {ModeEntry[]} */
  modes: [],
  /** @type {{id: string, sign: string, text: string, kind: string}[]} */
  delivery_states: [],
  /** @type {{id: string, text: string}[]} */
  held_reasons: [],
  /** @type {{id: string, text: string}[]} */
  end_reasons: [],
  /** @type {{id: string, text: string}[]} */
  agent_states: [],
  /** @type {{id: string, text: string, is_heading?: boolean}[]} */
  notices: [],
  /** @type {{name: string, form: string, help: string}[]} */
  commands: [],
  /** Commands that only the pane supports. */
  pane_commands: [],
  /** The types of events that may change the list of items that need a person. */
  attention_events: [],
  /** @type {Record<string, string[]>} */
  groups: {},
};

export async function loadCatalogue() {
  Object.assign(catalogue, await get("/catalogue"));
}

/** The text of an entry, or the id itself if there is no such entry. */
export function textOf(entries, id) {
  return entries.find((entry) => entry.id === id)?.text ?? id ?? "";
}
