// Calls to the gateway.

import { addressOf, forget, gatewayCount, moveOn, token, untilLeft } from "./access.js";
import { pause, Topic } from "./topic.js";

/** Delays before repeating an action whose response was lost; a dead gateway is back in a second or two. */
const REPEATED_AFTER_MS = [0, 200, 800, 2000];
/** How long an action without a response is remembered, so that a repetition has the same id. */
const REMEMBERED_MS = 60_000;

/** Notified when the gateway no longer accepts this page's token. */
export const lockedOut = new Topic();

let skewMs = 0;

/** The time by the gateway's clock, in seconds; a phone's own clock may be minutes off. */
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
 * @returns {Promise<any>} the response; a failure throws a CallError
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

/** A request that only reads is repeated at the other gateways; any other is left to its caller. */
async function send(method, path, body) {
  for (let tries = method === "GET" ? gatewayCount : 1; ; tries--) {
    try {
      return await sendOnce(method, path, body);
    } catch (error) {
      if (tries === 1 || error.status !== 0) throw error;
    }
  }
}

async function sendOnce(method, path, body) {
  const signal = untilLeft();
  const headers = { "X-Auth-Token": token() ?? "" };
  try {
    const response = await fetch(addressOf(path), {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
      signal,
    });
    keepTime(response.headers.get("Date"));
    return { response, answer: read(await response.text()) };
  } catch {
    // Of several calls that fail together, the first one moves on.
    if (!signal.aborted) moveOn();
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

/** An id for a user's action; randomUUID is not available to a page over plain HTTP. */
export function newId() {
  return `page-${[...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

const unanswered = new Map();

/**
 * Perform an action in the room exactly once. It keeps its id if it is repeated here because a response was
 * lost, or retried by the user after no response arrived.
 * @param {string} path
 * @param {object} [body]
 * @param {(id: string) => void} [first] called with the id before anything is sent
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
  // The header counts whole seconds: half a second is the best estimate, and smaller differences are ignored.
  if (Number.isFinite(told) && Math.abs(told + 500 - Date.now() - skewMs) > 1500) skewMs = told + 500 - Date.now();
}

export const get = (path) => call("GET", path);
export const post = (path, body = {}) => call("POST", path, body);

/** Encode one segment of a path. */
export const part = encodeURIComponent;
