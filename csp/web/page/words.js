// The words for states, the same everywhere; a colour never stands alone.

/** What an agent does. */
export const AGENT_WORDS = {
  starting: "starting",
  idle: "idle",
  busy: "working",
  needs_approval: "needs approval",
  needs_human: "needs you",
  limited: "at its limit",
  paused: "paused",
  benched: "benched",
  offline: "offline",
};

const WHY = {
  offline: "it is offline and gets it when it is back",
  starting: "it is still starting",
  busy: "it is at work and gets it after this turn",
  dialog: "a dialog is open in its pane",
  typing: "somebody is typing in its pane",
  draft: "there is a draft in its composer",
  paused: "it is paused",
  turn: "it comes with its next turn",
  loop: "agents have talked among themselves for long",
  stuck: "a text is stuck in its composer",
};

/** Say why a message waits. */
export function whyHeld(reason) {
  return WHY[reason] ?? reason ?? "";
}

/** How a delivery is shown: a sign, a word, a kind for its colour. */
export const STEPS = {
  queued: { sign: "○", word: "queued", kind: "waits" },
  held: { sign: "◔", word: "waits", kind: "waits" },
  typed: { sign: "✓", word: "typed", kind: "moves" },
  submitted: { sign: "✓", word: "submitted", kind: "done" },
  confirmed: { sign: "✓✓", word: "confirmed", kind: "done" },
  failed: { sign: "✗", word: "failed", kind: "failed" },
  withdrawn: { sign: "–", word: "withdrawn", kind: "ended" },
  expired: { sign: "–", word: "expired", kind: "ended" },
};

/** A time of day, 14:05. */
export function clock(ts) {
  return new Date(ts * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}

/** A moment in full. */
export function moment(ts) {
  return new Date(ts * 1000).toLocaleString();
}

/** 12,345 */
export const count = (number) => Number(number).toLocaleString("en-US");

/** $0.0123; more digits the smaller it is. */
export function money(usd) {
  return `$${usd.toFixed(usd >= 1 ? 2 : 4)}`;
}

/** "1 reply", "2 replies" */
export function several(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** "26,500 new tokens (1,200 output), 38,000 cached": limits count those that are new. */
export function tokens(used) {
  return `${count(used.new)} new tokens (${count(used.output)} output), ${count(used.cached)} cached`;
}

/** A hue for a name, always the same. */
export function hueOf(name) {
  let hash = 2166136261;
  for (const letter of name) hash = Math.imul(hash ^ letter.codePointAt(0), 16777619) >>> 0;
  return (hash * 139) % 360;
}
