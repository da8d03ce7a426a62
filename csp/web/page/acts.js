// What a person can do to the room, wherever the button for it is.

import { act, newId, part } from "./api.js";
import { attempt } from "./toast.js";

/**
 * ALLSTOP: end what runs in the session that is looked at, or everything.
 * A typed word is kept in the conversation, as one typed in a pane is.
 * @param {import("./room.js").Room} room
 * @param {string} [word] as it was typed
 */
export async function stop(room, word = "") {
  const thread = room.thread ?? room.running.at(-1)?.thread;
  const message = { to: "all", content: word, thread, id: newId() };
  // The word stops its thread; whoever looks at everything means everything.
  const stopping = { ...(room.thread === null ? { all: true } : { thread }), id: newId() };
  // A browser has six connections to a host, which may all be waiting for something: the WebSocket is one more.
  if (word) room.hurry({ op: "message", ...message });
  room.hurry({ op: "stop", ...stopping });
  const said = word ? attempt(act("/message", message)) : true;
  const stopped = attempt(act("/stop", stopping));
  room.refresh();
  return (await said) !== null && (await stopped) !== null;
}

/** Pause, resume, extend, skip, kick or stop a session. */
export function steer(session, action, body = {}) {
  return attempt(act(`/sessions/${part(session)}/${action}`, body));
}

/** Press a button for an agent: approve, deny, interrupt, pause, resume, share, noshare, restart. */
export function press(agent, verb, choice) {
  return attempt(act(`/agents/${part(agent)}/${verb}`, choice === undefined ? {} : { choice }));
}
