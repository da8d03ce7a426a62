// The modes, one row each: what a person can set, what the chip says.

/**
 * `unit` is what its length is counted in, as the gateway's field is called; null: it has none to set.
 * @typedef {{id: string, name: string, chip: string, about: string, unit: "rounds" | "steps" | null,
 *            length: number, fewest: number, first?: boolean, respectFinal?: boolean, ballot?: boolean,
 *            synth?: boolean, limits?: boolean, roles?: boolean}} ModeRow
 */

/** @type {ModeRow[]} */
export const MODES = [
  { id: "single", name: "Single", chip: "Single", unit: null, length: 2, fewest: 1, first: true,
    about: "One agent answers; it may hand over once." },
  { id: "collaborate", name: "Collaborate", chip: "Collab", unit: "rounds", length: 6, fewest: 1, first: true,
    about: "Agents take turns by handing over, until one says it is done." },
  { id: "autopilot", name: "Autopilot", chip: "Autopilot", unit: null, length: 0, fewest: 1, first: true,
    respectFinal: true, limits: true, about: "Agents go on by themselves until you say Allstop." },
  { id: "debate", name: "Debate", chip: "Debate", unit: "rounds", length: 3, fewest: 2, ballot: true, synth: true,
    about: "Positions in secret, then answers to each other, then a summary." },
  { id: "consensus", name: "Consensus", chip: "Consensus", unit: null, length: 2, fewest: 2, synth: true,
    about: "Proposals in secret, then a vote without names." },
  { id: "round_robin", name: "Round robin", chip: "Round robin", unit: "steps", length: 10, fewest: 1, first: true,
    synth: true, about: "Everybody in turn, for a number of steps, then a summary." },
  { id: "orchestrator", name: "Orchestrator", chip: "Orchestrator", unit: null, length: 0, fewest: 2, limits: true,
    about: "The orchestrator names who works next." },
  { id: "review", name: "Review", chip: "Review", unit: null, length: 0, fewest: 2, roles: true,
    about: "One agent builds, another reviews, every step is on disk." },
];

const BY_ID = new Map(MODES.map((row) => [row.id, row]));

/** @returns {ModeRow} */
export function modeOf(id) {
  return BY_ID.get(id) ?? { id, name: id, chip: id, unit: null, length: 0, fewest: 1, about: "" };
}

const ENDS = {
  final: "finished",
  no_handoff: "ended, nobody was handed the turn",
  malformed: "ended, the answer could not be read",
  cap_reached: "ended, all rounds done",
  stopped_by_user: "stopped",
  canceled: "canceled",
  emergency_turns: "stopped by the limit of turns",
  emergency_tokens: "stopped by the limit of tokens",
  emergency_minutes: "stopped by the limit of time",
  emergency_cost: "stopped by the limit of cost",
  too_few: "ended, too few agents",
  all_failed: "ended, all agents failed",
  done: "done",
  tie: "ended in a tie",
  no_quorum: "ended without a quorum",
  superseded: "replaced",
  accepted: "accepted",
  aborted: "aborted",
  halted: "ended after a halt",
};

/** Say how a session ended. */
export function endOf(reason) {
  return ENDS[reason] ?? String(reason ?? "ended").replaceAll("_", " ");
}

/**
 * The text of the status chip: "Collab: 2/6", "Autopilot: running (turn 17)", "Debate: round 2/3 · codex 0:42".
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
  if (row.roles) return `${orchestration.phase ?? word}${paused}`;
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
  // The chips of collaborate and autopilot are as short as can be; whose turn it is stands in the panel.
  if (!agent || session.mode === "collaborate" || session.mode === "autopilot") return "";
  const others = orchestration.waitingFor.length - 1;
  const clock = orchestration.deadline && session.status === "running" ? ` ${minutes(orchestration.deadline - now)}` : "";
  return ` · ${agent}${others > 0 ? ` +${others}` : ""}${clock}`;
}

/** Seconds as 0:42; nothing is ever less than no time. */
export function minutes(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const hours = Math.floor(whole / 3600);
  const rest = `${Math.floor((whole % 3600) / 60)}`.padStart(hours ? 2 : 1, "0");
  return `${hours ? `${hours}:` : ""}${rest}:${String(whole % 60).padStart(2, "0")}`;
}
