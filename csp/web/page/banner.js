// The banner that an agent wants to finish, while nothing but Allstop ends the session.

import { button, byId, h, set, swap } from "./dom.js";
import { stop } from "./acts.js";

/** @param {import("./room.js").Room} room */
export function startBanner(room) {
  let session = null;
  const hide = () => {
    session = null;
    set(byId("banner"), { hidden: true });
  };
  room.said.on((event) => {
    if (event.type !== "agent_response" || !event.final || event.late) return;
    const found = room.sessions.find((one) => one.id === event.session_id);
    if (found?.mode !== "autopilot" || found.status === "ended") return;
    session = event.session_id;
    show(room, event.sender, hide);
  });
  room.sessionsChanged.on(() => {
    const shown = room.sessions.find((one) => one.id === session);
    if (session && (!shown || shown.status === "ended")) hide();
  });
}

function show(room, agent, hide) {
  swap(
    byId("banner"),
    h("p", {}, h("b", {}, "Agent suggests finish"), ` (${agent}). Press ALLSTOP to end or let them continue.`),
    h("span", { class: "buttons" },
      button("ALLSTOP", () => stop(room), { class: "small bad", "aria-label": "ALLSTOP, as the agent suggests" }),
      button("Let them continue", hide, { class: "small" })),
  );
  set(byId("banner"), { hidden: false });
}
