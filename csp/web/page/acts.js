// A user's actions on the room, shared by all buttons.

import { act, newId, part } from "./api.js";
import { attempt } from "./toast.js";

/**
 * ALLSTOP: stop all work in the session in view, or everywhere.
 * @param {import("./room.js").Room} room
 */
export async function stop(room) {
  const stopping = { ...(room.thread === null ? { all: true } : { thread: room.thread }), id: newId() };
  // A browser's six connections to a host may all be waiting for responses, but the WebSocket is separate.
  room.hurry({ op: "stop", ...stopping });
  const stopped = attempt(act("/stop", stopping));
  room.refresh();
  return (await stopped) !== null;
}

/** Pause, resume, extend, skip, kick or stop a session. */
export function steer(session, action, body = {}) {
  return attempt(act(`/sessions/${part(session)}/${action}`, body));
}

/** Press a button for an agent: approve, deny, interrupt, pause, resume, share, noshare, restart. */
export function press(agent, verb, choice) {
  return attempt(act(`/agents/${part(agent)}/${verb}`, choice === undefined ? {} : { choice }));
}
