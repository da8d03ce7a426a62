// The commands that this page does itself; all others are done by the gateway.

import { openBoard } from "./board.js";
import { catalogue } from "./catalogue.js";
import { byId } from "./dom.js";
import { exportRoom } from "./export.js";
import { showTab } from "./tabs.js";
import { tell } from "./toast.js";

/** @type {Record<string, (rest: string) => any>} */
const PARTS = {
  mode: openMode,
  search,
  board: openBoard,
  export: () => exportRoom("md"),
  help,
};

/** Do what a typed command says; return whether it was done. */
export function runCommand(name, rest) {
  const run = PARTS[name];
  if (run) return run(rest);
  tell(`there is no /${name} here`, { isError: true, hint: "see /help" });
  return false;
}

function openMode() {
  showTab("session");
  byId("mode-part").open = true;
  byId("mode-goal").focus();
  return true;
}

function search(text) {
  byId("search-text").value = text;
  byId("search").requestSubmit();
  return true;
}

function help() {
  tell(catalogue.commands.map(({ form, help: about }) => `${form}: ${about}`).join(" · "));
  return true;
}
