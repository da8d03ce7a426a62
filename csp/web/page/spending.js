// Tokens and costs per agent, as bars.

import { byId, changes, h, set, setText, swap } from "./dom.js";
import { textElement } from "./text.js";
import { hueOf, money, several, tokens } from "./words.js";

/** @param {import("./room.js").Room} room */
export function startSpending(room) {
  const draw = () => drawSpending(room);
  room.usageChanged.on(draw);
  room.sessionsChanged.on(draw);
  byId("spending-scope").addEventListener("change", draw);
}

const isNew = changes();

function drawSpending(room) {
  const ofSession = byId("spending-scope").value === "session";
  const rows = ofSession ? (room.shown?.session.spent ?? []) : room.usage.items;
  set(byId("spending-part"), { hidden: !room.usage.items.length });
  if (!isNew([rows, room.usage.prices])) return;
  const most = Math.max(1, ...rows.map((row) => row.new));
  swap(byId("spending"), ...(rows.length ? rows.map((row) => bar(row, most)) : [h("li", { class: "hint" }, "Nothing yet.")]));
  setText(byId("spending-total"), total(rows));
  setText(byId("spending-prices"), room.usage.prices ? `Prices: ${room.usage.prices}` : "");
}

function bar(row, most) {
  const price = row.cost_usd === null ? "no known price" : money(row.cost_usd);
  const model = textElement("span", { class: "kind" }, row.model ?? "unnamed model");
  return h("li", { class: "spent", vars: { hue: hueOf(row.agent), share: row.new / most, out: row.new ? row.output / row.new : 0 } },
    h("div", { class: "spent-head" }, h("b", { class: "name" }, row.agent), model, h("span", { class: "tally" }, price)),
    h("div", { class: "bar", "aria-hidden": "true" }),
    h("p", { class: "hint" }, `${row.estimated ? "about " : ""}${tokens(row)}, ${several(row.replies, "reply", "replies")}`));
}

function total(rows) {
  const sumOf = (name) => rows.reduce((all, row) => all + row[name], 0);
  const priced = rows.filter((row) => row.cost_usd !== null);
  const sum = priced.reduce((all, row) => all + row.cost_usd, 0);
  return `${tokens({ new: sumOf("new"), output: sumOf("output"), cached: sumOf("cached") })}${priced.length ? `, ${money(sum)}` : ""}`;
}
