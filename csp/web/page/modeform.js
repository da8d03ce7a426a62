// The form that starts a session, with the mode, the participants and the topic.

import { act } from "./api.js";
import { ask, setProblem } from "./ask.js";
import { catalogue } from "./catalogue.js";
import { byId, h, offer, set, setText, swap } from "./dom.js";
import { has, modeOf, unitOf } from "./modes.js";
import { shortened } from "./text.js";
import { attempt } from "./toast.js";
import { hueOf } from "./words.js";

const KEY = "csp-mode";
/** The defaults for fields that the user has not changed. */
const FIRST = "debate";
const DEFAULT_THREAD = "default";
/** Fields of the form, with the mode options that they set. */
const FIELDS = [["first", "first"], ["synth", "synth"], ["ballot", "ballot"], ["final", "respect_final"], ["limits", "limits"], ["roles", "roles"]];
const LIMITS = ["turns", "tokens", "minutes", "cost"];

export class ModeForm {
  #room;
  #mode = localStorage.getItem(KEY) ?? FIRST;
  /** Agents in the room that do not take part. */
  #left = new Set();
  #drawn = "";

  /** @param {import("./room.js").Room} room */
  constructor(room) {
    this.#room = room;
    room.agentsChanged.on(() => this.#drawAgents());
    byId("mode-form").addEventListener("submit", (event) => this.#submit(event));
    // Errors disappear while they are being corrected.
    byId("mode-goal").addEventListener("input", () => setProblem("mode-goal", ""));
    byId("mode-agents").addEventListener("change", () => setProblem("mode-agents", ""));
    if (!catalogue.modes.some((row) => row.id === this.#mode)) this.#mode = FIRST;
    this.#drawModes();
    this.#choose(this.#mode);
  }

  #drawModes() {
    const choose = (id) => () => this.#choose(id);
    swap(
      byId("mode-toggle"),
      ...catalogue.modes.map(({ id, name, about }) =>
        h("label", { class: "mode-choice", title: about, data: { mode: id } },
          h("input", { type: "radio", name: "mode", value: id, checked: id === this.#mode, on: { change: choose(id) } }),
          h("span", {}, name))),
    );
  }

  #choose(id) {
    this.#mode = id;
    localStorage.setItem(KEY, id);
    const row = modeOf(id);
    setText(byId("mode-about"), row.about);
    set(byId("field-rounds"), { hidden: !unitOf(row) });
    setText(byId("rounds-label"), unitOf(row) === "steps" ? "Steps" : "Rounds");
    byId("mode-rounds").value = unitOf(row) ? row.rounds : "";
    for (const [field, option] of FIELDS) set(byId(`field-${field}`), { hidden: !has(row, option) });
    set(byId("field-agents"), { hidden: has(row, "roles") });
    set(byId("field-thread"), { hidden: has(row, "roles") });
  }

  #drawAgents() {
    const here = this.#room.agents.filter((agent) => agent.online);
    const wanted = here.map((agent) => `${agent.id} ${agent.role}`).join();
    const hasLead = here.some((agent) => agent.role === "orchestrator");
    for (const row of catalogue.modes) {
      if (has(row, "lead")) set(byId("mode-toggle").querySelector(`[data-mode="${row.id}"]`), { hidden: !hasLead });
    }
    if (wanted === this.#drawn) return;
    this.#drawn = wanted;
    swap(byId("mode-agents"), ...(here.length ? here.map((agent) => this.#choice(agent)) : [h("p", { class: "hint" }, "Nobody is online.")]));
    const ids = here.map(({ id }) => [id]);
    offer(byId("mode-first"), [["", "in order"], ...ids]);
    offer(byId("mode-synth"), [["", "automatic"], ...ids]);
    const roles = [byId("mode-builder"), byId("mode-reviewer")];
    const isSame = roles[0].value === roles[1].value;
    for (const list of roles) offer(list, ids);
    // A single agent was selected in both fields; a second one can be the reviewer.
    if (isSame) roles.forEach((list, index) => (list.selectedIndex = Math.min(index, ids.length - 1)));
  }

  #choice({ id, role }) {
    const toggle = (event) => (event.target.checked ? this.#left.delete(id) : this.#left.add(id));
    const isIn = role !== "orchestrator" && !this.#left.has(id);
    return h("label", { class: "agent-choice", vars: { hue: hueOf(id) } },
      h("input", { type: "checkbox", value: id, checked: isIn, on: { change: toggle } }), h("span", {}, id));
  }

  #agents() {
    return [...byId("mode-agents").querySelectorAll("input:checked")].map((input) => input.value);
  }

  #body() {
    const row = modeOf(this.#mode);
    const value = (id) => byId(id).value.trim();
    const rounds = Number(value("mode-rounds"));
    return {
      mode: this.#mode,
      topic: value("mode-goal"),
      agents: this.#agents(),
      ...(unitOf(row) && rounds && { [row.unit]: rounds }),
      ...(has(row, "first") && value("mode-first") && { first: value("mode-first") }),
      ...(has(row, "synth") && value("mode-synth") && { synth: value("mode-synth") }),
      ...(has(row, "ballot") && { ballot: byId("mode-ballot").checked }),
      ...(has(row, "respect_final") && { respect_final: byId("mode-final").checked }),
      ...(has(row, "limits") && { limits: this.#limits() }),
      ...(has(row, "limits") && value("mode-on-hard-limit") && { on_hard_limit: value("mode-on-hard-limit") }),
      ...(value("mode-on-limit") && { on_limit: value("mode-on-limit") }),
    };
  }

  #limits() {
    const given = LIMITS.map((name) => [name, Number(byId(`limit-${name}`).value)]).filter(([, number]) => number > 0);
    return Object.fromEntries(given);
  }

  async #submit(event) {
    event.preventDefault();
    const row = modeOf(this.#mode);
    if (!this.#isRight(row)) return undefined;
    if (has(row, "roles")) return this.#beginRun();
    const body = this.#body();
    // On request, use a separate thread, so that several sessions can run in parallel.
    const own = byId("mode-thread").checked;
    const thread = own ? undefined : (this.#room.thread ?? undefined);
    if (!own && !(await this.#mayReplace(row, thread ?? DEFAULT_THREAD))) return undefined;
    return this.#begin(own ? "/sessions" : "/mode", { ...body, thread });
  }

  /** Show the errors at each field; return whether there are none. */
  #isRight(row) {
    const isRun = has(row, "roles");
    const [builder, reviewer] = [byId("mode-builder").value, byId("mode-reviewer").value];
    const few = this.#agents().length < row.fewest;
    const problems = {
      "mode-agents": !isRun && few ? `Pick ${row.fewest === 1 ? "an agent" : `at least ${row.fewest} agents`}.` : "",
      "mode-reviewer": isRun && (!builder || builder === reviewer) ? "Pick two different agents: a builder and a reviewer." : "",
      "mode-goal": byId("mode-goal").value.trim() ? "" : "Enter a goal.",
    };
    for (const [id, words] of Object.entries(problems)) setProblem(id, words);
    return Object.values(problems).every((words) => !words);
  }

  /** Ask before replacing a running session. */
  async #mayReplace(row, thread) {
    const running = await attempt(this.#room.runningIn(thread));
    if (running === null) return false; // the gateway did not answer, which a toast says
    if (running === undefined) return true;
    const name = modeOf(running.mode).name;
    return ask(`${name} mode is running: "${shortened(running.topic || running.id, 80)}". Stop it and start ${row.name.toLowerCase()}?`, "Stop it and start", "Keep it");
  }

  #beginRun() {
    const value = (id) => byId(id).value.trim();
    return this.#begin("/runs", {
      goal: value("mode-goal"),
      builder: value("mode-builder"),
      reviewer: value("mode-reviewer"),
      max_revisions: Number(value("mode-revisions") || 3),
      ...(value("mode-on-limit") && { on_limit: value("mode-on-limit") }),
      thread: this.#room.thread ?? undefined,
    });
  }

  async #begin(path, body) {
    set(byId("mode-start"), { disabled: true });
    const begun = await attempt(act(path, body));
    set(byId("mode-start"), { disabled: false });
    if (!begun) return;
    byId("mode-goal").value = "";
    byId("session-panel").scrollTop = 0;
    this.#room.refresh();
  }
}
