// Notify the user when something needs them, an agent has replied, or a session has ended.

import { byId, set, setText } from "./dom.js";
import { endOf, modeOf } from "./modes.js";
import { shortened } from "./text.js";
import { tell } from "./toast.js";

const KEY = "csp-notify";
const LONGEST = 200;
const ENDED = "ended";

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
  const notify = (title, body, tag) => {
    if (isOn() && document.hidden) new Notification(title, { body: shortened(body ?? "", LONGEST), tag: `csp-${tag}` });
  };
  let known = new Set();
  room.attentionChanged.on(() => {
    drawTitle(room);
    const fresh = room.attention.filter((item) => !known.has(keyOf(item)));
    known = new Set(room.attention.map(keyOf));
    for (const item of fresh) notify(item.title, item.detail, item.id);
    const asking = fresh.filter((item) => item.level !== "info");
    if (asking.length) setText(byId("calls"), asking.map((item) => item.title).join(", "));
  });
  room.statusChanged.on(() => drawTitle(room));
  // Messages in a session are not only for the user, who is notified when it has ended.
  room.said.on((event) => {
    if (event.type !== "agent_response" || event.session_id) return;
    notify(`${event.sender} replied`, event.text, `reply-${event.sender}`);
  });
  room.sessionEvent.on((event) => {
    if (event.type !== "mode" || event.change !== ENDED) return;
    const session = room.sessions.find((one) => one.id === event.session_id);
    notify(`${session ? modeOf(session.mode).name : "Session"} ended: ${endOf(event.reason)}`, session?.topic, `end-${event.session_id}`);
  });
}

const keyOf = ({ id, since }) => `${id} ${since}`;

async function turn(on) {
  if (!on) return localStorage.setItem(KEY, "off");
  if (!("Notification" in window)) return tell("this browser has no notifications", { isError: true });
  const answer = await Notification.requestPermission();
  if (answer !== "granted") return tell("the browser does not allow notifications here", { isError: true, hint: "check this site's browser permissions" });
  return localStorage.setItem(KEY, "on");
}

/** Only items that wait for an answer are counted, not news. */
function drawTitle(room) {
  const calls = room.attention.filter((item) => item.level !== "info").length;
  document.title = `${calls ? `(${calls}) ` : ""}${room.name || "CSP"} · group chat`;
}
