// The commands that this page executes itself; the gateway executes all others.

import { act, get, part } from "./api.js";
import { openBoard } from "./board.js";
import { catalogue } from "./catalogue.js";
import { byId, h, setText, swap } from "./dom.js";
import { exportRoom } from "./export.js";
import { reportRows } from "./report.js";
import { showTab } from "./tabs.js";
import { textElement } from "./text.js";
import { attempt, tell } from "./toast.js";
import { Topic } from "./topic.js";
import { whyHeld } from "./words.js";

/** Notifies other parts of the page: {show: seq}, {history: agent} or {look: agent}. */
export const asked = new Topic();

/** @type {Record<string, (rest: string, room: any) => any>} */
const PARTS = {
  agents: () => openTab("agents", "agents-panel"),
  status: () => openTab("session", "session-panel"),
  votes: () => openTab("session", "votes-part"),
  mode: (rest) => chooseMode(rest),
  add: openAddModel,
  search,
  history,
  show,
  board: openBoard,
  queue: showQueue,
  focus,
  fwd: forward,
  cancel: (rest, room) => cancelNewest(room),
  review,
  rules: showRules,
  report: showReport,
  export: () => exportRoom("md"),
  help,
};

/** Execute a typed command; return whether it was executed. */
export function runCommand(name, rest, room = null) {
  const run = PARTS[name];
  if (run) return run(rest.trim(), room);
  return fail(`Unknown command /${name}.`, "see /help");
}

function fail(text, hint = "") {
  tell(text, { isError: true, hint });
  return false;
}

const nameOf = (word) => word.replace(/^@/, "").toLowerCase();

function openTab(tab, id) {
  showTab(tab);
  const place = byId(id);
  place.tabIndex = -1;
  place.focus();
  place.scrollIntoView({ block: "nearest" });
  return true;
}

/** Open the form that starts a session, with the named mode selected if there is one. */
export function chooseMode(rest) {
  showTab("session");
  byId("mode-part").open = true;
  const [mode] = rest.split(/\s/);
  const choice = [...byId("mode-toggle").querySelectorAll("input")].find((input) => input.value === mode);
  if (choice && !choice.checked) choice.click();
  byId("mode-goal").focus();
  return true;
}

function openAddModel(rest) {
  if (rest.includes("--")) return fail("Add an agent with its own command in a terminal.", `csp add ${rest}`);
  byId("add-model-open").click();
  return true;
}

function search(text) {
  byId("search-text").value = text;
  byId("search").requestSubmit();
  return true;
}

function history(rest) {
  const agent = rest.split(/\s+/).find((word) => word && !/^\d+$/.test(word));
  showTab("chat");
  asked.tell({ history: agent ? nameOf(agent) : "" });
  return true;
}

/** Show the message with the given number, or else the newest one. */
function show(rest) {
  const number = Number(rest.replace(/^#/, ""));
  if (rest && !(number > 0)) return fail(`Which message? ${rest} is not a number.`, "/show 52");
  showTab("chat");
  asked.tell(rest ? { show: number } : { history: "" });
  return true;
}

function focus(rest, room) {
  const name = nameOf(rest);
  if (!room?.agent(name)) return fail(name ? `There is no agent ${name}.` : "Which agent? Usage: /focus AGENT");
  asked.tell({ look: name });
  return true;
}

async function forward(rest, room) {
  const [, from, to, note = ""] = /^@?(\S+)\s+@?(\S+)\s*([\s\S]*)$/.exec(rest) ?? [];
  if (!to) return fail("Which agents? Usage: /fwd FROM TO [NOTE]");
  const line = `@${to} ${note ? `${note}\n\n` : ""}${from} said:\n{${from}.last}`;
  return (await attempt(act("/line", { line, thread: room?.thread ?? undefined }))) !== null;
}

/** Withdraw the user's newest waiting message; the gateway withdraws one given by number. */
async function cancelNewest(room) {
  const waiting = (room?.queue ?? []).findLast((item) => item.sender === "human");
  if (!waiting) return fail("No message of yours is waiting.");
  const done = await attempt(act(`/messages/${part(waiting.id)}/cancel`));
  room.refresh();
  return done !== null;
}

/** Show the runs, or the form that starts one; the gateway executes actions on a run. */
function review(rest) {
  return rest.startsWith("start") ? chooseMode("review") : openTab("session", "session-panel");
}

// --- lists -----------------------------------------------------------------------------------------

function showQueue(rest, room) {
  const items = room?.queue ?? [];
  return showList("Undelivered messages", items.map((item) =>
    h("li", {},
      textElement("p", { dir: "auto" }, item.text.slice(0, 200), h("b", {}, `#${item.seq} from ${item.sender} to ${item.agent}: `)),
      h("p", { class: "hint" }, whyHeld(item.reason) || item.state))), "No queued messages.");
}

/** List the commands that agents may run without approval, with a button that removes each rule. */
async function showRules() {
  const found = await attempt(get("/rules"));
  if (!found) return false;
  return showList("Approval rules", found.items.map(({ number, agent, pattern, problem }) =>
    h("li", {},
      textElement("p", { dir: "auto" }, pattern, h("b", {}, `${agent} may run: `)),
      h("p", { class: "hint" }, [number ? `/unallow ${number}` : "from csp.toml", problem].filter(Boolean).join("; ")))), "No rules yet. /allow AGENT COMMAND adds one.");
}

/** Show what happened in the last twelve hours, or in the named session. */
async function showReport(rest) {
  const session = rest.split(/\s+/)[0];
  const found = await attempt(get(session ? `/report?session=${part(session)}` : "/report"));
  return found ? showList("Report", reportRows(found), "Nothing happened.") : false;
}

function showList(title, rows, nothing) {
  setText(byId("waiting-title"), title);
  swap(byId("waiting-list"), ...(rows.length ? rows : [h("li", { class: "hint" }, nothing)]));
  byId("waiting").showModal();
  return true;
}

const SPEECH = [
  ["@name text", "speak to one agent or @all; it stays chosen"],
  ["text", "speak to those that To names"],
  ["!name text", "urgent: interrupt the agent if it is busy"],
  ["{name.last}", "inside a text: what an agent said last"],
  ["Allstop", "stop what is running, at once"],
  ["//text, @@text", "send text that starts with / or @"],
];
const KEYS = [
  ["Enter", "send; with Shift a new line"],
  ["Tab", "complete @names, /commands and {name.last}"],
  ["Esc Esc", "stop everything"],
  ["Ctrl K", "search"],
  ["↑ ↓", "on a message: go to the one before or after"],
  ["R Q F L", "on a message: reply, quote, forward, copy its link"],
];

function help(rest) {
  const wanted = rest.replace(/^\//, "");
  const commands = catalogue.commands.map(({ form, help: about }) => [form, about]);
  const parts = [["Talking", SPEECH], ["Commands", commands], ["Keys", KEYS], ["Only in the pane", catalogue.pane_commands.map(({ form, help: about }) => [form, about])]];
  swap(byId("help-body"), ...parts.filter(([, rows]) => rows.length).flatMap(([title, rows]) => [
    h("h3", {}, title),
    h("dl", {}, ...rows.flatMap(([form, about]) => [h("dt", {}, h("code", {}, form)), h("dd", {}, about)])),
  ]));
  byId("help").showModal();
  byId("help-title").focus();
  if (!wanted) return true;
  const row = [...byId("help-body").querySelectorAll("dt")].find((one) => one.textContent.startsWith(`/${wanted}`));
  row?.scrollIntoView({ block: "center" });
  return true;
}

/** Enable the close buttons of the list dialogs. */
export function startLists() {
  byId("help-open").addEventListener("click", () => help(""));
  for (const name of ["help", "waiting"]) byId(`${name}-close`).addEventListener("click", () => byId(name).close());
}
