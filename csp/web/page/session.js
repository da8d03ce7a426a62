// The running or latest session, with its progress and actions.

import { steer } from "./acts.js";
import { act as actOnce, now } from "./api.js";
import { button, byId, changes, h, set, setText, swap, swapFocused } from "./dom.js";
import { chipText, endOf, minutes, modeOf, unitOf } from "./modes.js";
import { shortened, textElement } from "./text.js";
import { attempt } from "./toast.js";
import { clock, money, tokens } from "./words.js";

/** @param {import("./room.js").Room} room */
export function startSession(room) {
  const draw = () => drawSession(room);
  room.sessionsChanged.on(draw);
  room.viewChanged.on(() => fillViews(room));
  room.sessionsChanged.on(() => fillViews(room));
  byId("view-choice").addEventListener("change", (event) => room.choose(event.target.value || null));
  // The turn clock changes without events.
  setInterval(() => drawChip(room), 500);
  draw();
}

function drawChip(room) {
  const chip = byId("chip");
  setText(byId("chip-text"), chipText(room.shown, now()));
  set(chip, { "data-status": room.shown?.session.status ?? "none" });
  const clockPlace = document.getElementById("turn-clock");
  const { deadline } = room.shown?.orchestration ?? {};
  if (clockPlace) setText(clockPlace, deadline ? minutes(deadline - now()) : "");
}

/** Let the user choose whether the conversation shows one session or everything. */
function fillViews(room) {
  const choice = byId("view-choice");
  const sessions = room.sessions.toReversed();
  const wanted = sessions.map((session) => `${session.id} ${session.status}`).join();
  if (choice.dataset.drawn !== wanted) {
    choice.dataset.drawn = wanted;
    swap(choice, h("option", { value: "" }, "All threads"), ...sessions.map(viewOption));
  }
  choice.value = room.view ?? "";
}

function viewOption(session) {
  const topic = shortened(session.topic, 40);
  const thread = session.thread === "default" ? "" : ` (${session.thread})`;
  const live = session.status === "ended" ? "" : "● ";
  return textElement("option", { value: session.id }, `${live}${modeOf(session.mode).name}: ${topic || session.id}${thread}`);
}

/** The phases of a review in which a person decides. */
const YOURS = new Set(["approval", "escalated", "halted"]);
const isNew = changes();
let wasRunning = false;

/** While a session is running, the form for a new one is collapsed. */
function foldForm(room) {
  const isRunning = room.running.length > 0;
  if (isRunning !== wasRunning) byId("mode-part").open = !isRunning;
  wasRunning = isRunning;
}

function drawSession(room) {
  drawChip(room);
  foldForm(room);
  const shown = room.shown;
  if (!isNew(shown && [shown.session, shown.orchestration.waitingFor, shown.orchestration.waits, shown.orchestration.phase])) return;
  const none = h("p", { class: "hint" }, "No session yet. Pick a mode and enter a goal.");
  swapFocused(byId("session-now"), ...(shown ? sessionParts(room, shown) : [none]));
  drawChip(room);
}

function sessionParts(room, { session, orchestration }) {
  const isOver = session.status === "ended";
  return [
    h("div", { class: "session-head" },
      h("b", {}, modeOf(session.mode).name), h("span", { class: "status", data: { status: session.status } }, isOver ? endOf(session.reason) : session.status)),
    textElement("p", { class: "topic", dir: "auto" }, session.topic || "(no topic)"),
    facts(session, orchestration, isOver),
    !isOver && sessionButtons(room, session, orchestration),
  ];
}

function facts(session, orchestration, isOver) {
  const rows = [
    !isOver && ["Phase", orchestration.phase],
    ["Round", session.maxRounds ? `${Math.min(session.round + 1, session.maxRounds)} of ${session.maxRounds}` : `turn ${session.round + 1}`],
    !isOver && ["Waiting for", waitingFor(session, orchestration), h("span", { id: "turn-clock", class: "clock" })],
    !isOver && orchestration.waits?.length > 0 && ["Waits", orchestration.waits.map(waitText).join(", ")],
    ["Turns", String(session.turns)],
    session.tokens > 0 && ["Spent", `${tokens(session)}${session.cost_usd ? `, ${money(session.cost_usd)}` : ""}`],
    ["Started", clock(session.startedAt)],
    isOver && session.endedAt && ["Took", minutes(session.endedAt - session.startedAt)],
  ];
  return h("dl", { class: "facts" }, ...rows.filter(Boolean).flatMap(([name, value, extra]) => [h("dt", {}, name), h("dd", {}, value, extra)]));
}

/** What an agent is waited for, and until when. */
function waitText({ agent, kind, until, detail }) {
  const words = { reset: "usage limit", person: detail || "a person", offline: "offline", resume: "stopped" }[kind] ?? kind;
  return `${agent}: ${words}${until ? ` until ${clock(until)}` : ""}`;
}

/** In some phases of a review, only a person can continue. */
function waitingFor(session, { waitingFor: agents, phase }) {
  if (agents.length) return agents.join(", ");
  return session.mode === "review" && YOURS.has(phase) ? "you" : "nobody";
}

function sessionButtons(room, session, orchestration) {
  const act = (action, body) => () => steer(session.id, action, body).then(() => room.refresh());
  const next = () => attempt(actOnce("/turn/next", { thread: session.thread })).then(() => room.refresh());
  const make = (label, run, about) => button(label, run, { class: "small", id: `session-${label.toLowerCase().replace(/\W+/g, "-")}`, title: about });
  const isPaused = session.status === "paused";
  return h("div", { class: "buttons" },
    make("Stop", act("stop"), "End this session with a summary"),
    isPaused ? make("Resume", act("resume"), "Continue") : make("Pause", act("pause"), "Ask no agent until it is resumed"),
    orchestration.currentTurn && make("Next", next, "Move to the next speaker"),
    orchestration.currentTurn && make("Skip", act("skip", { agent: orchestration.currentTurn }), `Skip ${orchestration.currentTurn}`),
    session.maxRounds > 0 && unitOf(modeOf(session.mode)) && make("+1 round", act("extend", { rounds: 1 }), "One more round"),
    orchestration.currentTurn && make("More time", act("extend"), "Give the open turns more time"));
}
