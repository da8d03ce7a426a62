// The modes, states, reasons, notices and commands as the gateway describes them.

import { get } from "./api.js";

/**
 * @typedef {{id: string, name: string, chip: string, about: string, unit: string, rounds: number,
 *            fewest: number, most: number | null, options: string[]}} ModeEntry
 */

/** Filled once, before anything is drawn. */
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
  /** Those that only the pane has. */
  pane_commands: [],
  /** The types of events after which something else may need a person. */
  attention_events: [],
  /** @type {Record<string, string[]>} */
  groups: {},
};

export async function loadCatalogue() {
  Object.assign(catalogue, await get("/catalogue"));
}

/** The text of an entry; that of an id which is not there is the id itself. */
export function textOf(entries, id) {
  return entries.find((entry) => entry.id === id)?.text ?? id ?? "";
}
