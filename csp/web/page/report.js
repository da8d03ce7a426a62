// The report on what happened while nobody watched, as rows of a list.

import { h } from "./dom.js";
import { endOf } from "./modes.js";
import { textElement } from "./text.js";
import { money, moment, several, tokens } from "./words.js";

const KINDS = { reset: "at a usage limit", person: "needed a person", offline: "was offline", resume: "was stopped" };

/** Return a report as pairs of a heading and a text. */
export function reportRows(report) {
  return [
    ["Time", `${moment(report.since)} to ${moment(report.until)}`],
    ...report.sessions.map((one) => [`${one.id} (${one.mode})`, `${one.reason ? endOf(one.reason) : one.status}: ${one.topic}`]),
    ...report.agents.map((one) => [one.agent, turnsOf(one)]),
    ...report.waits.map((wait) => [`${wait.agent || wait.session} ${KINDS[wait.kind] ?? wait.kind}`, span((wait.ended ?? report.until) - wait.since) + (wait.ended === null ? ", until now" : "")]),
    ...(report.slept_s ? [["This machine slept", span(report.slept_s)]] : []),
    ...report.commits.map((one) => [`${several(one.total, "commit")} in ${one.directory}`, one.subjects.join("\n")]),
    ...report.tests.map((one) => [`Tests of ${one.run}`, one.summary]),
    ...report.spent.map((one) => [`${one.agent} used`, `${tokens(one)}${one.cost_usd === null ? "" : `, ${money(one.cost_usd)}`}`]),
    ...(report.needs.length ? report.needs.map((title) => ["Needs you", title]) : [["Needs you", "nothing"]]),
  ].map(([title, text]) => h("li", {}, textElement("p", { dir: "auto" }, text, h("b", {}, `${title}: `))));
}

function turnsOf({ turns, replies, cancelled, failed }) {
  const parts = [several(turns, "turn"), several(replies, "reply", "replies"), cancelled && `${cancelled} cancelled`];
  return [...parts, ...failed.map(({ reason, count }) => `${count} failed: ${reason}`)].filter(Boolean).join(", ");
}

function span(seconds) {
  const minutes = Math.round(seconds / 60);
  if (minutes < 1) return `${Math.round(seconds)} s`;
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
