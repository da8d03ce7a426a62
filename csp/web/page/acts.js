// What a person can do to the room, wherever the button for it is.

import { part, post } from "./api.js";
import { attempt } from "./toast.js";

/**
 * ALLSTOP: end what runs in the session that is looked at, or everything.
 * A typed word is kept in the conversation, as one typed in a pane is.
 * @param {import("./room.js").Room} room
 * @param {string} [word] as it was typed
 */
export async function stop(room, word = "") {
  const thread = room.thread ?? room.running.at(-1)?.thread;
  const said = word ? attempt(post("/message", { to: "all", content: word, thread })) : true;
  // The word stops its thread; whoever looks at everything means everything.
  const stopped = attempt(post("/stop", room.thread === null ? { all: true } : { thread }));
  room.refresh();
  return (await said) !== null && (await stopped) !== null;
}

/** Pause, resume, extend, skip, kick or stop a session. */
export function steer(session, action, body = {}) {
  return attempt(post(`/sessions/${part(session)}/${action}`, body));
}

/** Press a button for an agent: approve, deny, interrupt, pause, resume, share, noshare, restart. */
export function press(agent, verb, choice) {
  return attempt(post(`/agents/${part(agent)}/${verb}`, choice === undefined ? {} : { choice }));
}
