// The ballot of a session: bars with the reasons.

import { byId, h, set, swap } from "./dom.js";
import { appendText } from "./text.js";
import { hueOf, several } from "./words.js";

const EXCERPT = 280;

/** @param {import("./room.js").Room} room */
export function startVotes(room) {
  let drawn = "";
  room.sessionsChanged.on(() => {
    const { proposals = {}, votes = {} } = room.shown?.orchestration ?? {};
    const wanted = JSON.stringify([proposals, votes]);
    if (wanted === drawn) return;
    drawn = wanted;
    const labels = Object.keys(proposals).sort();
    set(byId("votes-part"), { hidden: !labels.length });
    const most = Math.max(1, ...labels.map((label) => votersOf(votes, label).length));
    swap(byId("votes"), ...labels.map((label) => candidate(label, proposals[label], votersOf(votes, label), most)));
  });
}

function votersOf(votes, label) {
  return Object.entries(votes).filter(([, vote]) => vote.label === label);
}

function candidate(label, proposal, voters, most) {
  const text = h("p", { class: "proposal", dir: "auto" });
  appendText(text, proposal.text.length > EXCERPT ? `${proposal.text.slice(0, EXCERPT)}…` : proposal.text);
  return h("li", { class: "candidate", data: { label }, vars: { share: voters.length / most, hue: hueOf(proposal.agent || label) } },
    h("div", { class: "candidate-head" },
      h("b", {}, label), proposal.agent && h("span", { class: "name", vars: { hue: hueOf(proposal.agent) } }, proposal.agent),
      h("span", { class: "tally" }, several(voters.length, "vote"))),
    h("div", { class: "bar", "aria-hidden": "true" }),
    text,
    voters.length > 0 && h("ul", { class: "reasons" }, ...voters.map(reason)));
}

function reason([agent, vote]) {
  const line = h("li", { dir: "auto" }, h("b", { class: "name", vars: { hue: hueOf(agent) } }, agent), " ");
  appendText(line, vote.reason || "gave no reason");
  return line;
}
