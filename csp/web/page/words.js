// The texts for states, used everywhere; a colour is never the only sign.

import { catalogue, textOf } from "./catalogue.js";

/** Return the text for an agent's state. */
export const agentWord = (state) => textOf(catalogue.agent_states, state);

/** Return the text for the reason why a message is waiting. */
export const whyHeld = (reason) => textOf(catalogue.held_reasons, reason);

/** The display of a delivery state: a sign, a text, and a kind for its colour. */
export function stepOf(state) {
  return catalogue.delivery_states.find((one) => one.id === state) ?? { sign: "?", text: state, kind: "waits" };
}

/** A time of day, such as 14:05. */
export function clock(ts) {
  return new Date(ts * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}

/** A date and time. */
export function moment(ts) {
  return new Date(ts * 1000).toLocaleString();
}

/** A number with separators, such as 12,345. */
export const count = (number) => Number(number).toLocaleString("en-US");

/** A cost, such as $0.0123; small amounts have more digits. */
export function money(usd) {
  return `$${usd.toFixed(usd >= 1 ? 2 : 4)}`;
}

/** A number with its noun, such as "1 reply" or "2 replies". */
export function several(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** Token counts, such as "26,500 new tokens (1,200 output), 38,000 cached"; limits count only new ones. */
export function tokens(used) {
  return `${count(used.new)} new tokens (${count(used.output)} output), ${count(used.cached)} cached`;
}

/** The letters in an avatar: two, because agents such as claude, codex and copilot begin alike. */
export function initials(name) {
  const [first = "?", second = ""] = name;
  return first.toUpperCase() + second;
}

/** A constant hue for a name. */
export function hueOf(name) {
  let hash = 2166136261;
  for (const letter of name) hash = Math.imul(hash ^ letter.codePointAt(0), 16777619) >>> 0;
  return (hash * 139) % 360;
}
