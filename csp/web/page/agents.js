// The agents: who is here, what each does, what waits for it, what it asks.

import { press } from "./acts.js";
import { now } from "./api.js";
import { button, byId, changes, h, swapFocused } from "./dom.js";
import { textElement } from "./text.js";
import { agentWord, clock, hueOf, several, whyHeld } from "./words.js";

const REST = new Set(["idle", "busy"]);

/**
 * @param {import("./room.js").Room} room
 * @param {(agent: string) => void} look shows the screen of an agent
 */
export function startAgents(room, look) {
  const draw = () => drawAgents(room, look);
  room.agentsChanged.on(draw);
  room.queueChanged.on(draw);
  room.sessionsChanged.on(draw);
  draw();
}

const isNew = changes();

function drawAgents(room, look) {
  const cards = room.agents.map((agent) => cardOf(room, agent));
  // Redrawn only if it looks different: a focus or an open menu in a card would be lost.
  if (!isNew(cards)) return;
  const nobody = h("li", { class: "hint" }, "Nobody is here yet. In a shell: ", h("code", {}, "csp add NAME -- COMMAND"));
  swapFocused(byId("agent-list"), ...(cards.length ? cards.map((card) => cardElement(card, look)) : [nobody]));
}

/** Everything that a card shows, as plain values. */
function cardOf(room, agent) {
  const waiting = room.queue.filter((item) => item.agent === agent.id && item.state !== "typed");
  const owes = room.shown?.orchestration?.waitingFor?.includes(agent.id);
  const takesPart = room.shown?.session.status !== "ended" && room.shown?.orchestration?.turnOrder?.includes(agent.id);
  return {
    id: agent.id,
    state: agent.state,
    word: agentWord(agent.state),
    turn: REST.has(agent.state) && takesPart ? (owes ? "YOUR TURN" : "WAITING") : "",
    kind: agent.role === "orchestrator" ? "orchestrator" : agent.kind,
    duty: textOf(agent, "duty"),
    model: textOf(agent, "model"),
    detail: agent.detail,
    until: agent.until && agent.until > now() ? clock(agent.until) : "",
    share: agent.share,
    waiting: waiting.map((item) => ({ id: item.id, seq: item.seq, from: item.sender, why: whyHeld(item.reason) || item.state })),
    hasDialog: agent.state === "needs_approval",
  };
}

function textOf(agent, name) {
  const text = Array.isArray(agent.capabilities) ? null : agent.capabilities?.[name];
  return typeof text === "string" ? text : "";
}

function cardElement(card, look) {
  return h("li", { class: "agent", data: { state: card.state, agent: card.id }, vars: { hue: hueOf(card.id) } },
    h("div", { class: "agent-head" },
      h("span", { class: "avatar", "aria-hidden": "true" }, card.id[0].toUpperCase()),
      h("div", { class: "agent-name" }, h("b", { class: "name" }, card.id), h("span", { class: "kind" }, [card.kind, card.duty, card.model].filter(Boolean).join(" · "))),
      h("span", { class: "state", data: { state: card.state } }, card.until ? `${card.word} until ${card.until}` : card.word)),
    card.turn && h("p", { class: "turn-word" }, `[${card.turn}]`),
    card.detail && textElement("p", { class: "detail", dir: "auto" }, card.detail),
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

function buttons(card, look) {
  const is = (...states) => states.includes(card.state);
  const make = (label, verb) => button(label, () => press(card.id, verb), { class: "small", id: `${verb}-${card.id}`, "aria-label": `${label} ${card.id}` });
  return h("div", { class: "buttons" },
    button("Screen", () => look(card.id), { class: "small", id: `screen-of-${card.id}`, "aria-label": `Screen of ${card.id}` }),
    is("paused") ? make("Resume", "resume") : !is("offline") && make("Pause", "pause"),
    is("busy") && make("Interrupt", "interrupt"),
    !is("offline") && make(card.share ? "Unshare" : "Share", card.share ? "noshare" : "share"),
    is("offline", "needs_human") && make("Restart", "restart"));
}
