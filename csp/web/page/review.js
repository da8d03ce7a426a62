// A review run, with its plan, checks, findings and questions to a person.

import { act as actOnce, get, part } from "./api.js";
import { diffElement } from "./diff.js";
import { button, byId, changes, h, set, swap } from "./dom.js";
import { endOf } from "./modes.js";
import { shortened, textElement } from "./text.js";
import { attempt } from "./toast.js";
import { several } from "./words.js";

const LONGEST = 2000;
/** A person's actions in each phase: [label, action, body]; the text in the field is sent as the reason. */
const ACTS = {
  approval: [["Approve the plan", "go"], ["Abort", "abort"]],
  escalated: [
    ["Accept", "decide", { decision: "accept" }],
    ["Revise", "decide", { decision: "revise" }],
    ["Abort", "decide", { decision: "abort" }],
  ],
  halted: [["Continue", "resume"], ["Abort", "abort"]],
  ended: [],
};
/** The phases in which a person decides. */
const YOURS = new Set(["approval", "escalated", "halted"]);
const UNDER_WAY = [["Halt", "halt"], ["Abort", "abort"]];

/** @param {import("./room.js").Room} room */
export function startRuns(room) {
  const isNew = changes();
  room.sessionsChanged.on(async () => {
    const detail = await newestOf(room.shown?.session);
    if (!isNew(detail)) return;
    room.run = detail;
    room.runChanged.tell();
    set(byId("run-part"), { hidden: !detail });
    if (detail) draw(room, detail);
  });
}

async function newestOf(session) {
  if (session?.mode !== "review") return null;
  const runs = await get("/runs").catch(() => ({ items: [] }));
  const run = runs.items.findLast((one) => one.session_id === session.id);
  return run ? get(`/runs/${part(run.id)}`).catch(() => null) : null;
}

function draw(room, detail) {
  const reason = byId("run-part").querySelector("input")?.value ?? "";
  const nameOf = (file) => file.querySelector(".diff-name").textContent;
  const open = new Set([...byId("run").querySelectorAll(".diff-file[open]")].map(nameOf));
  swap(byId("run"), head(detail), ...plan(detail), ...checks(detail.update), ...findings(room, detail), ...acts(room, detail.run, reason));
  for (const file of byId("run").querySelectorAll(".diff-file")) file.open = open.has(nameOf(file));
}

function head({ run, risk }) {
  const waits = run.phase === "ended" ? endOf(run.reason) : waitsFor(run);
  const rows = [
    ["Run", run.id],
    ["Builder", run.builder],
    ["Reviewer", run.reviewer],
    ["Phase", `${run.phase}, ${waits}`],
    ["Cycle", `${run.cycle}, ${several(run.revisions, "revision")} of ${run.max_revisions}`],
    risk && ["Risk", risk],
    run.why && ["Why", run.why],
    run.branch && ["Branch", run.branch],
  ];
  return h("dl", { class: "facts" }, ...rows.filter(Boolean).flatMap(([name, value]) => [h("dt", {}, name), text("dd", value)]));
}

/** The participant that must act next, which in some phases is the user. */
function waitsFor(run) {
  if (YOURS.has(run.phase)) return "waiting for you";
  return run.waits_for ? `waiting for ${run.waits_for}` : "running";
}

const text = (tag, value, props = {}) => textElement(tag, { dir: "auto", ...props }, shortened(String(value), LONGEST));

function plan({ plan: known, notes = [] }) {
  if (!known) return [];
  return [
    h("h4", {}, "Plan"),
    known.summary && text("p", known.summary),
    h("ol", { class: "plan" }, ...known.steps.map((step) => text("li", step))),
    ...notes.map((note) => text("p", note, { class: "hint" })),
  ];
}

function checks(update) {
  if (!update) return [];
  const { tests, figures } = update;
  return [
    h("h4", {}, "Last step"),
    text("p", update.step),
    (figures || update.diff) && diffElement(update),
    tests && h("p", { class: "verdict", data: { passed: String(tests.passed) } }, `Tests ${tests.passed ? "passed ✓" : "failed ✗"}: `, text("code", tests.command)),
  ];
}

function findings(room, { run, findings: known = [] }) {
  if (!known.length) return [];
  const judge = (finding, verdict) => () => act(room, run.id, "finding", { finding: finding.id, verdict });
  const element = (finding) =>
    h("li", { data: { severity: finding.severity } },
      h("b", {}, `${finding.severity}${finding.resolved ? ", resolved" : ", open"}: `), text("span", finding.text),
      finding.verdict ? h("span", { class: "hint" }, ` (${finding.verdict})`)
        : h("span", { class: "buttons" },
          button("Right", judge(finding, "confirmed"), { class: "link", "aria-label": `Finding ${finding.id} was right` }),
          button("Wrong", judge(finding, "rejected"), { class: "link", "aria-label": `Finding ${finding.id} was wrong` })));
  return [h("h4", {}, "Findings"), h("ul", { class: "findings" }, ...known.map(element))];
}

function acts(room, run, reason) {
  const known = ACTS[run.phase] ?? UNDER_WAY;
  if (!known.length) return [];
  const field = h("input", { "aria-label": "Reason", placeholder: "Reason (required to abort)", maxlength: "2000", value: reason });
  const press = (action, body = {}) => () => act(room, run.id, action, { ...body, ...(field.value.trim() && { rationale: field.value.trim() }) });
  return [
    h("div", { class: "buttons" }, ...known.map(([label, action, body]) => button(label, press(action, body), { class: "small", id: `run-${label.split(" ")[0].toLowerCase()}` }))),
    field,
  ];
}

async function act(room, id, action, body) {
  if ((await attempt(actOnce(`/runs/${part(id)}/${action}`, body))) !== null) room.refresh();
}
