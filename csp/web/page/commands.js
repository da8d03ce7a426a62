// The commands that can be typed here, one row each; completion and /help read this table.

import { press, steer, stop } from "./acts.js";
import { act } from "./api.js";
import { openBoard } from "./board.js";
import { byId } from "./dom.js";
import { exportRoom } from "./export.js";
import { showTab } from "./tabs.js";
import { attempt, tell } from "./toast.js";

const onAgent = (verb) => async (room, [agent, choice]) =>
  (await press(agent, verb, choice ? Number(choice) : undefined)) !== null;

const onSession = (action, body = () => ({})) => async (room, words) => {
  const session = room.shown?.session;
  if (!session || session.status === "ended") return complain("no session is running");
  return (await steer(session.id, action, body(words))) !== null;
};

/** With an agent's name it is about the agent, alone about the session. */
const onEither = (verb) => (room, words) => (words.length ? onAgent(verb)(room, words) : onSession(verb)(room, words));

/** @type {{name: string, usage?: string, help: string, least?: number, run: (room: any, words: string[]) => any}[]} */
export const COMMANDS = [
  { name: "stop", help: "stop what is running, at once", run: (room) => stop(room) },
  { name: "mode", usage: "MODE TOPIC", help: "begin a mode", run: () => openMode() },
  { name: "end", help: "end the running session in order", run: onSession("stop") },
  { name: "next", help: "pass the turn on", run: async (room) => (await attempt(act("/turn/next", { thread: room.shown?.session.thread }))) !== null },
  { name: "skip", usage: "[AGENT]", help: "go past the one whose turn it is", run: onSession("skip", ([agent]) => (agent ? { agent } : {})) },
  { name: "extend", usage: "[N]", help: "give the session more rounds", run: onSession("extend", ([n]) => (n ? { rounds: Number(n) } : {})) },
  { name: "pause", usage: "[AGENT]", help: "pause an agent; alone: the session", run: onEither("pause") },
  { name: "resume", usage: "[AGENT]", help: "undo /pause", run: onEither("resume") },
  { name: "approve", usage: "AGENT [N]", help: "say yes to an agent's dialog", least: 1, run: onAgent("approve") },
  { name: "deny", usage: "AGENT", help: "say no to an agent's dialog", least: 1, run: onAgent("deny") },
  { name: "interrupt", usage: "AGENT", help: "stop what an agent is doing", least: 1, run: onAgent("interrupt") },
  { name: "search", usage: "TEXT", help: "find messages", least: 1, run: (room, words) => search(words.join(" ")) },
  { name: "board", usage: "[TEXT]", help: "show the whiteboard, or what is found there", run: (room, words) => openBoard(words.join(" ")) },
  { name: "export", help: "save the whole history as a file", run: () => exportRoom("md") },
  { name: "help", help: "list the commands", run: () => help() },
];

/** Do what a typed command says; tell whether it was done. */
export function runCommand(room, { name, rest }) {
  const row = COMMANDS.find((one) => one.name === name);
  if (!row) return complain(`there is no /${name} here`, "see /help; a text that begins with a slash has two");
  const words = rest.split(/\s+/).filter(Boolean);
  if (words.length < (row.least ?? 0)) return complain("expected more", `/${row.name} ${row.usage}`);
  return row.run(room, words);
}

function complain(problem, hint = "") {
  tell(problem, { isError: true, hint });
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
  tell(COMMANDS.map(({ name, usage, help: about }) => `/${name}${usage ? ` ${usage}` : ""}: ${about}`).join(" · "));
  return true;
}
