// The agents, with their activity, waiting messages and questions.

import { press } from "./acts.js";
import { now } from "./api.js";
import { button, byId, changes, h, swapFocused } from "./dom.js";
import { shortened, textElement } from "./text.js";
import { agentWord, clock, count, hueOf, initials, several, whyHeld } from "./words.js";

const REST = new Set(["idle", "busy"]);
const LONGEST = 200;
/** Percent of an agent's context below which it is marked. */
const LOW = 20;
/** The name for a kind of agent if nothing more specific is known; CLI would say nothing. */
const KINDS = { api: "API model", mcp: "MCP client", demo: "demo agent", web: "web page" };

/**
 * @param {import("./room.js").Room} room
 * @param {(agent: string) => void} look shows the screen of an agent
 */
export function startAgents(room, look) {
  const draw = () => drawAgents(room, look);
  room.agentsChanged.on(draw);
  room.queueChanged.on(draw);
  room.sessionsChanged.on(draw);
  room.usageChanged.on(draw);
  room.runChanged.on(draw);
  draw();
}

const isNew = changes();

function drawAgents(room, look) {
  const cards = room.agents.map((agent) => cardOf(room, agent));
  // Redrawn only if something has changed, because a focus or an open menu in a card would be lost.
  if (!isNew(cards)) return;
  const nobody = h("li", { class: "hint" }, "Nobody is here yet. In a shell: ", h("code", {}, "csp add NAME -- COMMAND"));
  swapFocused(byId("agent-list"), ...(cards.length ? cards.map((card) => cardElement(card, look)) : [nobody]));
}

/** The content of a card, as plain values. */
function cardOf(room, agent) {
  const waiting = room.queue.filter((item) => item.agent === agent.id && item.state !== "typed");
  const owes = room.shown?.orchestration?.waitingFor?.includes(agent.id);
  const takesPart = room.shown?.session.status !== "ended" && room.shown?.orchestration?.turnOrder?.includes(agent.id);
  return {
    id: agent.id,
    state: agent.state,
    word: agentWord(agent.state),
    turn: REST.has(agent.state) && takesPart ? (owes ? "YOUR TURN" : "WAITING") : "",
    about: aboutOf(room, agent),
    doing: doingOf(room, agent),
    tests: testsOf(room, agent),
    work: workOf(room, agent),
    context: contextOf(agent),
    until: agent.until && agent.until > now() ? clock(agent.until) : "",
    share: agent.share,
    waiting: waiting.map((item) => ({ id: item.id, seq: item.seq, from: item.sender, why: whyHeld(item.reason) || item.state })),
    hasDialog: agent.state === "needs_approval",
  };
}

/** A value that an agent reports about itself. */
function textOf(agent, name) {
  const text = Array.isArray(agent.capabilities) ? null : agent.capabilities?.[name];
  return typeof text === "string" ? text : "";
}

/** An agent's role, program and model, as far as they are known. */
function aboutOf(room, agent) {
  const program = Array.isArray(agent.capabilities) ? agent.capabilities[0] : textOf(agent, "profile");
  const words = [agent.role === "orchestrator" && "orchestrator", textOf(agent, "duty"), program !== agent.id && program, modelOf(room, agent)].filter((word) => typeof word === "string" && word);
  return words.length ? [...new Set(words)].join(" · ") : (KINDS[agent.kind] ?? "");
}

/** The model that an agent reports, or else the model of its latest replies. */
function modelOf(room, agent) {
  return textOf(agent, "model") || (room.usage.items.findLast((row) => row.agent === agent.id && row.model)?.model ?? "");
}

/** What an agent is doing now: the tool and the command it asks for or has called, else what it wrote last. */
function doingOf(room, agent) {
  if (!agent.online) return "";
  if (agent.dialog?.tool || agent.dialog?.arguments) return [agent.dialog.tool, agent.dialog.runs || agent.dialog.arguments].filter(Boolean).join(": ");
  const wrote = agent.state === "busy" && room.doing.get(agent.id)?.text.trim().split("\n").at(-1);
  return agent.detail || wrote || "";
}

/** The active run in which an agent is the builder. */
const runOf = (room, agent) => (room.run?.run.builder === agent.id && room.run.run.phase !== "ended" ? room.run : null);

/** The last command run for an agent, with its exit code. */
function testsOf(room, agent) {
  const tests = runOf(room, agent)?.update?.tests;
  if (!tests) return "";
  const code = Number.isInteger(tests.code) ? `exit ${tests.code}` : tests.timed_out ? "timed out" : tests.passed ? "passed" : "failed";
  return `${tests.command}: ${code}`;
}

/** The branch and changed files of an agent's worktree. */
function workOf(room, agent) {
  const known = runOf(room, agent);
  const figures = known?.update?.figures;
  const changes = figures && `${several(figures.files ?? 0, "changed file")} +${figures.insertions ?? 0} −${figures.deletions ?? 0}`;
  return [known?.run.branch, changes].filter(Boolean).join(" · ") || agent.work || "";
}

/** How much of an agent's context is left, or its size if the limit is unknown. */
function contextOf({ context, window }) {
  if (!context) return null;
  const size = `${count(context)} tokens`;
  if (!window) return { words: `${size} in context` };
  const left = Math.max(0, Math.floor((100 * (window - context)) / window));
  return { words: `${left}% context left`, left, title: `${size} of ${count(window)}` };
}

function cardElement(card, look) {
  return h("li", { class: "agent", data: { state: card.state, agent: card.id }, vars: { hue: hueOf(card.id) } },
    h("div", { class: "agent-head" },
      h("span", { class: "avatar", "aria-hidden": "true" }, initials(card.id)),
      h("div", { class: "agent-name" }, h("b", { class: "name" }, card.id), card.about && textElement("span", { class: "kind" }, card.about)),
      h("span", { class: "state", data: { state: card.state } }, card.until ? `${card.word} until ${card.until}` : card.word)),
    card.turn && h("p", { class: "turn-word" }, `[${card.turn}]`),
    card.doing && textElement("p", { class: "detail", dir: "auto", title: shortened(card.doing, 1000) }, shortened(card.doing, LONGEST)),
    card.tests && textElement("p", { class: "detail tests", dir: "auto" }, card.tests),
    card.work && textElement("p", { class: "detail work", dir: "auto" }, card.work),
    card.context && h("p", { class: "detail context", data: { low: String(card.context.left < LOW) }, title: card.context.title }, card.context.words),
    card.waiting.length > 0 && waitingList(card.waiting),
    buttons(card, look),
  );
}

function waitingList(waiting) {
  const first = waiting.slice(0, 3).map((item) => h("li", {}, `#${item.seq} from ${item.from}: ${item.why}`));
  return h("div", { class: "waiting" },
    h("p", {}, `${several(waiting.length, "message")} ${waiting.length === 1 ? "waits" : "wait"}`),
    h("ul", {}, ...first));
}

/** Each button keeps its place, whether or not it can be pressed now. */
function buttons(card, look) {
  const is = (...states) => states.includes(card.state);
  const make = (label, verb, canPress) =>
    button(label, () => canPress && press(card.id, verb), { class: "small", id: `${verb}-${card.id}`, "aria-label": `${label} ${card.id}`, "aria-disabled": canPress ? null : "true" });
  return h("div", { class: "buttons places" },
    button("Screen", () => look(card.id), { class: "small", id: `screen-of-${card.id}`, "aria-label": `Screen of ${card.id}` }),
    is("paused") ? make("Resume", "resume", true) : make("Pause", "pause", !is("offline")),
    make("Interrupt", "interrupt", is("busy")),
    make(card.share ? "Unshare" : "Share", card.share ? "noshare" : "share", !is("offline")),
    make("Restart", "restart", is("offline", "needs_human")));
}
