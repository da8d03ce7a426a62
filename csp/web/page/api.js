// Calls to the gateway.

import { forget, token } from "./access.js";
import { pause, Topic } from "./topic.js";

/** When an act is repeated whose answer was lost: a gateway that died is back after a second or two. */
const REPEATED_AFTER_MS = [0, 200, 800, 2000];
/** How long an act that nobody answered is remembered, so that the same one keeps its id. */
const REMEMBERED_MS = 60_000;

/** Told when the gateway does not know this page any more. */
export const lockedOut = new Topic();

let skewMs = 0;

/** What the gateway's clock shows, in seconds; a phone's own may be minutes off. */
export function now() {
  return (Date.now() + skewMs) / 1000;
}

export class CallError extends Error {
  constructor(status, message, hint) {
    super(message);
    this.status = status;
    this.hint = hint ?? "";
  }
}

/**
 * @param {string} method
 * @param {string} path
 * @param {object} [body]
 * @returns {Promise<any>} the answer; a CallError says why not
 */
export async function call(method, path, body) {
  const { response, answer } = await send(method, path, body);
  if (response.ok) return answer;
  if (response.status === 401) {
    forget();
    lockedOut.tell(answer.error);
  }
  throw new CallError(response.status, answer.error ?? `the gateway answered ${response.status}`, answer.hint);
}

async function send(method, path, body) {
  const headers = { "X-Auth-Token": token() ?? "" };
  try {
    const response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
    });
    keepTime(response.headers.get("Date"));
    return { response, answer: read(await response.text()) };
  } catch {
    throw new CallError(0, "the gateway does not answer", "see: csp status");
  }
}

function read(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

/** An id for something that a person does; randomUUID is not there for a page over plain http. */
export function newId() {
  return `page-${[...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

const unanswered = new Map();

/**
 * Do something in the room that must not be done twice. It has one id, whether it is repeated here because an
 * answer was lost, or tried again by the person after nobody answered.
 * @param {string} path
 * @param {object} [body]
 * @param {(id: string) => void} [first] is told the id before anything is sent
 */
export async function act(path, body = {}, first = () => {}) {
  const key = JSON.stringify([path, body]);
  const before = unanswered.get(key);
  unanswered.delete(key);
  const id = body.id ?? (before && Date.now() - before.at < REMEMBERED_MS ? before.id : newId());
  first(id);
  for (const waitMs of [...REPEATED_AFTER_MS, null]) {
    try {
      return await call("POST", path, { ...body, id });
    } catch (error) {
      if (error.status === 0 && waitMs === null) unanswered.set(key, { id, at: Date.now() });
      if (error.status !== 0 || waitMs === null) throw error;
    }
    await pause(waitMs);
  }
  return undefined;
}

function keepTime(date) {
  const told = Date.parse(date ?? "");
  // The header counts whole seconds: half of one is the fairest guess, and less than that is no difference.
  if (Number.isFinite(told) && Math.abs(told + 500 - Date.now() - skewMs) > 1500) skewMs = told + 500 - Date.now();
}

export const get = (path) => call("GET", path);
export const post = (path, body = {}) => call("POST", path, body);

/** Encode what stands between two slashes of a path. */
export const part = encodeURIComponent;
