// The ballot of a session, as bars with reasons.

import { byId, changes, h, set, swap } from "./dom.js";
import { shortened, textElement } from "./text.js";
import { hueOf, several } from "./words.js";

const EXCERPT = 280;

/** @param {import("./room.js").Room} room */
export function startVotes(room) {
  const isNew = changes();
  room.sessionsChanged.on(() => {
    const { proposals = {}, votes = {} } = room.shown?.orchestration ?? {};
    if (!isNew([proposals, votes])) return;
    const labels = Object.keys(proposals).sort();
    set(byId("votes-part"), { hidden: !labels.length });
    const voters = labels.map((label) => votersOf(votes, proposals, label));
    const most = Math.max(1, ...voters.map(counted));
    swap(byId("votes"), ...labels.map((label, index) => candidate(label, proposals[label], voters[index], most)));
  });
}

/** The agents that voted for a label; an own vote counts only where there are no others, as the room counts. */
function votersOf(votes, proposals, label) {
  const isOwn = (agent, vote) => proposals[vote.label]?.agent === agent;
  const others = Object.entries(votes).some(([agent, vote]) => !isOwn(agent, vote));
  return Object.entries(votes)
    .filter(([, vote]) => vote.label === label)
    .map(([agent, vote]) => ({ agent, reason: vote.reason, counts: !others || !isOwn(agent, vote) }));
}

const counted = (voters) => voters.filter((voter) => voter.counts).length;

function candidate(label, proposal, voters, most) {
  return h("li", { class: "candidate", data: { label }, vars: { share: counted(voters) / most, hue: hueOf(proposal.agent || label) } },
    h("div", { class: "candidate-head" },
      h("b", {}, label), proposal.agent && h("span", { class: "name", vars: { hue: hueOf(proposal.agent) } }, proposal.agent),
      h("span", { class: "tally" }, several(counted(voters), "vote"))),
    h("div", { class: "bar", "aria-hidden": "true" }),
    textElement("p", { class: "proposal", dir: "auto" }, shortened(plain(proposal.text), EXCERPT)),
    voters.length > 0 && h("ul", { class: "reasons" }, ...voters.map(reason)));
}

/** A text without the stars of markdown: the start of a proposal is one paragraph here. */
const plain = (text) => text.replace(/\*\*([^*\n]+)\*\*/g, "$1");

function reason({ agent, reason: why, counts }) {
  const name = h("b", { class: "name", vars: { hue: hueOf(agent) } }, agent);
  const line = textElement("li", { dir: "auto" }, why || "gave no reason", name, " ");
  if (!counts) line.append(" (for its own, so it does not count)");
  return line;
}
