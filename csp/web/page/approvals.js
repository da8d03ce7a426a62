// What agents ask of the person, above the composer, where it cannot be overlooked.

import { press } from "./acts.js";
import { button, byId, changes, h, swap } from "./dom.js";
import { shortened, textElement } from "./text.js";
import { hueOf } from "./words.js";

const ASKING = new Set(["needs_approval", "needs_human"]);
const LONGEST = 2000;

/**
 * @param {import("./room.js").Room} room
 * @param {(agent: string) => void} look shows the screen of an agent
 */
export function startApprovals(room, look) {
  const isNew = changes();
  room.agentsChanged.on(() => {
    const asking = room.agents.filter((agent) => ASKING.has(agent.state));
    if (!isNew(asking.map(({ id, state, detail, dialog }) => [id, state, detail, dialog]))) return;
    swap(byId("approvals"), ...asking.map((agent) => callElement(agent, look)));
  });
}

function callElement(agent, look) {
  const needsApproval = agent.state === "needs_approval";
  const dialog = agent.dialog ?? {};
  const question = dialog.question || agent.detail || (needsApproval ? "May it go on?" : "It waits for somebody at its keyboard.");
  return h("section", { class: "approval", role: "group", "aria-label": `${agent.id} asks`, data: { agent: agent.id }, vars: { hue: hueOf(agent.id) } },
    h("p", { class: "approval-head" },
      h("b", { class: "name" }, agent.id), needsApproval ? ` wants to use ${dialog.tool || "a tool"}` : " needs you in its pane"),
    dialog.arguments && block("pre", dialog.arguments),
    block("p", question),
    h("div", { class: "buttons" },
      ...(needsApproval ? answers(agent.id, dialog.choices ?? []) : []),
      button("Screen", () => look(agent.id), { class: "small", "aria-label": `Screen of ${agent.id}, who asks` })),
  );
}

function block(tag, text) {
  return textElement(tag, { class: "asked", dir: "auto", ...(tag === "pre" && { tabindex: "0" }) }, shortened(text, LONGEST));
}

/** Yes and no by the CLI's own keys; where it offers more answers, each of them. */
function answers(agent, choices) {
  return [
    button("Approve", () => press(agent, "approve"), { class: "small good", "aria-label": `Approve what ${agent} asks` }),
    button("Deny", () => press(agent, "deny"), { class: "small bad", "aria-label": `Deny what ${agent} asks` }),
    ...choices.map(({ number, label }) =>
      button(`${number}. ${label}`, () => press(agent, "approve", number), { class: "small" })),
  ];
}
