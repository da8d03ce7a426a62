// The texts for states, used everywhere; a colour is never the only sign.

import { catalogue, textOf } from "./catalogue.js";

/** Say what an agent does. */
export const agentWord = (state) => textOf(catalogue.agent_states, state);

/** Say why a message waits. */
export const whyHeld = (reason) => textOf(catalogue.held_reasons, reason);

/** How a delivery is shown: a sign, a text, a kind for its colour. */
export function stepOf(state) {
  return catalogue.delivery_states.find((one) => one.id === state) ?? { sign: "?", text: state, kind: "waits" };
}

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
