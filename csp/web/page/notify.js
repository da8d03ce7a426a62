// Call the person back when an agent cannot go on alone.

import { byId, set, setText } from "./dom.js";
import { tell } from "./toast.js";

const CALLS = { needs_approval: "asks for approval", needs_human: "needs you in its pane" };
const KEY = "csp-notify";

/** @param {import("./room.js").Room} room */
export function startNotifications(room) {
  const toggle = byId("notify");
  const isOn = () => localStorage.getItem(KEY) === "on" && "Notification" in window && Notification.permission === "granted";
  const draw = () => set(toggle, { "aria-pressed": String(isOn()) });
  toggle.addEventListener("click", async () => {
    await turn(!isOn());
    draw();
  });
  draw();
  let known = new Set();
  room.agentsChanged.on(() => {
    const calls = room.agents.filter((agent) => CALLS[agent.state]);
    drawTitle(room, calls.length);
    for (const agent of calls) if (!known.has(agent.id)) call(agent, isOn());
    known = new Set(calls.map((agent) => agent.id));
  });
}

async function turn(on) {
  if (!on) return localStorage.setItem(KEY, "off");
  if (!("Notification" in window)) return tell("this browser has no notifications", { isError: true });
  const answer = await Notification.requestPermission();
  if (answer !== "granted") return tell("the browser does not allow notifications here", { isError: true, hint: "check this site's browser permissions" });
  return localStorage.setItem(KEY, "on");
}

function drawTitle(room, calls) {
  document.title = `${calls ? `(${calls}) ` : ""}${room.name || "CSP"} · group chat`;
}

function call(agent, isOn) {
  const text = `${agent.id} ${CALLS[agent.state]}`;
  setText(byId("calls"), text);
  if (isOn && document.hidden) new Notification(text, { body: agent.dialog?.question || agent.detail || "", tag: `csp-${agent.id}` });
}
