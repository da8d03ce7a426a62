// The texts about a mode in the chip and the form.

import { catalogue } from "./catalogue.js";

/** @returns {import("./catalogue.js").ModeEntry} */
export function modeOf(id) {
  const unknown = { id, name: id, chip: id, about: "", unit: "", rounds: 0, fewest: 1, most: null, options: [] };
  return catalogue.modes.find((row) => row.id === id) ?? unknown;
}

/** Whether the user can set an option for a mode. */
export const has = (row, option) => row.options.includes(option);

/** The unit of a mode's length if it can be set and has a default, else an empty string. */
export const unitOf = (row) => (row.rounds && !has(row, "roles") ? row.unit : "");

/** Describe how a session ended. */
export function endOf(reason) {
  return catalogue.end_reasons.find((entry) => entry.id === reason)?.text ?? String(reason ?? "ended").replaceAll("_", " ");
}

/**
 * The text of the status chip, such as "Collab: 2/6" or "Debate: round 2/3 · codex 0:42".
 * @param {{session: any, orchestration: any} | null} shown
 * @param {number} now in seconds
 */
export function chipText(shown, now) {
  if (!shown) return "Freeform";
  const { session, orchestration } = shown;
  const row = modeOf(session.mode);
  if (session.status === "ended") return `${row.chip}: ${endOf(session.reason)}${reached(row, session)}`;
  const word = session.status === "paused" ? "paused" : "running";
  return `${row.chip}: ${progress(row, session, orchestration, word)}${turn(orchestration, session, now)}`;
}

function progress(row, session, orchestration, word) {
  const paused = word === "paused" ? ", paused" : "";
  if (has(row, "roles")) return `${orchestration.phase ?? word}${paused}`;
  if (orchestration.phase === "synthesis" || orchestration.phase === "ballot") return `${orchestration.phase}${paused}`;
  if (row.id === "collaborate") return `${session.round}/${session.maxRounds}${paused}`;
  if (!session.maxRounds) return `${word} (turn ${session.round + 1})`;
  const unit = row.unit === "steps" ? "step" : "round";
  return `${unit} ${session.round + 1}/${session.maxRounds}${paused}`;
}

function reached(row, session) {
  if (row.id === "collaborate") return ` (${session.turns}/${session.maxRounds})`;
  return session.turns ? ` (turn ${session.turns})` : "";
}

function turn(orchestration, session, now) {
  const agent = orchestration.currentTurn;
  // The chips of collaborate and autopilot are as short as possible; the panel shows the current turn.
  if (!agent || session.mode === "collaborate" || session.mode === "autopilot") return "";
  const others = orchestration.waitingFor.length - 1;
  const clock = orchestration.deadline && session.status === "running" ? ` ${minutes(orchestration.deadline - now)}` : "";
  return ` · ${agent}${others > 0 ? ` +${others}` : ""}${clock}`;
}

/** Seconds in the format 0:42, never negative. */
export function minutes(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const hours = Math.floor(whole / 3600);
  const rest = `${Math.floor((whole % 3600) / 60)}`.padStart(hours ? 2 : 1, "0");
  return `${hours ? `${hours}:` : ""}${rest}:${String(whole % 60).padStart(2, "0")}`;
}
