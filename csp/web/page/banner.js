// The banner that an agent suggests finishing a session that only Allstop ends.

import { button, byId, h, set, swap } from "./dom.js";
import { stop } from "./acts.js";

/** @param {import("./room.js").Room} room */
export function startBanner(room) {
  /** @type {{session: string, agent: string} | null} */
  let wish = null;
  const forget = () => {
    wish = null;
    draw();
  };
  const draw = () => {
    const session = room.sessions.find((one) => one.id === wish?.session);
    const isOpen = session?.mode === "autopilot" && session.status !== "ended";
    if (isOpen && byId("banner").hidden) show(room, wish.agent, forget);
    set(byId("banner"), { hidden: !isOpen });
  };
  room.said.on((event) => {
    if (event.type !== "agent_response" || !event.final || event.late) return;
    wish = { session: event.session_id, agent: event.sender };
    draw();
  });
  room.sessionsChanged.on(draw);
}

function show(room, agent, forget) {
  swap(
    byId("banner"),
    h("p", {}, h("b", {}, `${agent} suggests finishing.`), " Press ALLSTOP to end, or let them continue."),
    h("span", { class: "buttons" },
      button("ALLSTOP", () => stop(room), { class: "small bad", "aria-label": "ALLSTOP, as the agent suggests" }),
      button("Let them continue", forget, { class: "small" })),
  );
}
