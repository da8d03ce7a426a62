// Calls to the gateway.

import { forget, token } from "./access.js";
import { Topic } from "./topic.js";

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
  const response = await send(method, path, body);
  const answer = await response.json().catch(() => ({}));
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
    return response;
  } catch {
    throw new CallError(0, "the gateway does not answer", "see: csp status");
  }
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
