// What a person typed, taken apart as the human pane does it.

/**
 * @typedef {{kind: "say", to: string, text: string, urgent: boolean}
 *   | {kind: "stop"}
 *   | {kind: "command", name: string, rest: string}
 *   | {kind: "mode", body: object}
 *   | {kind: "aim", to: string}
 *   | {kind: "wrong", problem: string, hint: string}
 *   | {kind: "nothing"}} Typed
 */

const ADDRESS = /^([@!])([A-Za-z0-9][A-Za-z0-9-]{0,31})[:,]?(?:\s+|$)/;
const COMMAND = /^\/([A-Za-z]+)(?:\s+|$)/;
const OTHERS = /[^a-z]+/g;
const ROUTED = /^([A-Za-z_]+)\s*([^:]*):\s*([^]+)$/;
const OPTION = /(?:^|\s)--([a-z-]+)(?:[= ]+("[^"]*"|(?!--)\S+))?/g;
const FLAGS = new Set(["ballot", "respect-final", "soft-turns"]);
const NUMBERS = new Set(["rounds", "steps"]);
const LIMITS = new Set(["turns", "tokens", "minutes", "cost"]);
const NAMES = new Set(["first", "synth"]);

/**
 * @param {string} text
 * @param {string} to whom the composer speaks to
 * @returns {Typed}
 */
export function readTyped(text, to) {
  const whole = text.trim();
  if (!whole) return { kind: "nothing" };
  if ("/@!".includes(whole[0]) && whole[1] === whole[0]) return say(to, whole.slice(1));
  if (whole[0] === "/") return readCommand(whole);
  const found = ADDRESS.exec(whole);
  if (found) return readAddress(found[2].toLowerCase(), whole.slice(found[0].length).trim(), found[1] === "!");
  return isAllstop(whole) ? { kind: "stop" } : say(to, whole);
}

function say(to, text, urgent = false) {
  return { kind: "say", to, text, urgent };
}

function readAddress(to, text, urgent) {
  if (isAllstop(text) || (!text && isAllstop(to))) return { kind: "stop" };
  if (to === "router") return readRouted(text);
  if (text) return say(to, text, urgent);
  return urgent ? wrong("expected a text behind it", `!${to} text`) : { kind: "aim", to };
}

function readRouted(text) {
  const found = ROUTED.exec(text);
  if (!found) return wrong("expected a mode, agents, a colon, a goal", "@router collaborate claude codex: the goal");
  const agents = idsIn(found[2]);
  return { kind: "mode", body: { mode: found[1].toLowerCase(), topic: found[3].trim(), ...(agents.length && { agents }) } };
}

function readCommand(whole) {
  const found = COMMAND.exec(whole);
  if (!found) return wrong("this is not a command", `to send it as a text, type /${whole.split(/\s/, 1)[0]}`);
  const name = found[1].toLowerCase();
  const rest = whole.slice(found[0].length).trim();
  if (isAllstop(name)) return { kind: "stop" };
  return name === "mode" && rest ? readMode(rest) : { kind: "command", name, rest };
}

/** /mode debate "the topic" --rounds 2 --agents a,b --ballot */
function readMode(rest) {
  const [mode] = rest.split(/\s/, 1);
  const body = { mode: mode.toLowerCase(), limits: {} };
  let problem = "";
  const topic = rest.slice(mode.length).replace(OPTION, (_, name, value) => {
    problem ||= take(body, name, unquoted(value ?? ""));
    return " ";
  });
  if (problem) return wrong(problem, '/mode debate "topic" --rounds 2 --agents a,b --first a --synth b');
  return { kind: "mode", body: { ...body, topic: unquoted(topic.trim()) } };
}

function take(body, name, value) {
  if (FLAGS.has(name)) body[name.replace("-", "_")] = true;
  else if (name === "agents") body.agents = idsIn(value);
  else if (NAMES.has(name) && value) body[name] = value.replace(/^@/, "").toLowerCase();
  else if (NUMBERS.has(name) && /^\d{1,6}$/.test(value)) body[name] = Number(value);
  else if (LIMITS.has(name) && /^\d{1,9}(\.\d{1,6})?$/.test(value)) body.limits[name] = Number(value);
  else return `--${name}: ${NUMBERS.has(name) || LIMITS.has(name) ? "expected a number" : "there is no such option"}`;
  return "";
}

function wrong(problem, hint) {
  return { kind: "wrong", problem, hint };
}

function idsIn(text) {
  return text.split(/[\s,]+/).filter(Boolean).map((word) => word.replace(/^@/, "").toLowerCase());
}

function unquoted(text) {
  return /^"[^"]*"$/.test(text) ? text.slice(1, -1).trim() : text;
}

/** Tell whether a text is nothing but the word that stops everything, however it is spelt. */
export function isAllstop(text) {
  return text.length <= 100 && text.toLowerCase().replace(OTHERS, "") === "allstop";
}
