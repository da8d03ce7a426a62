// One message of the conversation.

import { catalogue } from "./catalogue.js";
import { h } from "./dom.js";
import { showMarkdown } from "./markdown.js";
import { endOf, modeOf } from "./modes.js";
import { appendText, shortened, textElement } from "./text.js";
import { clock, count, hueOf, initials, moment, money, several, tokens } from "./words.js";

const ENDINGS = { interrupted: "interrupted", failed: "failed", limited: "reached a usage limit" };
const NOTICE_LIMIT = 6000;

/**
 * @param {any} event
 * @param {{isLive?: boolean}} [options]
 * @returns {HTMLElement}
 */
export function messageElement(event, { isLive = false } = {}) {
  const element = event.type === "system" ? notice(event) : said(event, isLive);
  element.dataset.seq = event.seq;
  return element;
}

function notice(event) {
  const isHeading = catalogue.notices.find(({ id }) => id === event.code)?.is_heading;
  const words = h("p", { class: "notice-text", dir: "auto" });
  appendText(words, shortened(noticeText(event), NOTICE_LIMIT));
  const kind = isHeading ? "part" : event.code === "session_summary" ? "notice summary" : "notice";
  const element = h("li", { class: kind }, words, time(event));
  // The session and the cards of the agents say whose turn it is.
  element.hidden = event.code === "your_turn";
  return element;
}

/** What a notice says here: what was said or counted before is not said again at the end of a session. */
function noticeText({ code, text, params = {} }) {
  const { mode, reason, replies, tokens: used, about = "", seconds = 0, details = "" } = params;
  switch (code) {
    case "ended_stopped_by_user":
      return "Stopped (Allstop).";
    case "run_needs_person":
      // Its buttons are on the list of what needs the person.
      return params.run && params.why ? `${params.run} needs you: ${params.why}` : text;
    case "run_waits_for_person":
      return params.run ? `${params.run} has waited for you for ${several(Math.round(params.minutes ?? 0), "minute")}.` : text;
    case "suggests_finish":
      return params.agent ? `${params.agent} suggests finishing.` : text;
    case "session_summary": {
      if (!mode || !reason || replies === undefined || used === undefined) return text;
      const why = reason === "done" ? "finished" : endOf(reason);
      const after = `${why} after ${several(replies, "reply", "replies")}`;
      const title = `${modeOf(mode).name} summary: ${after}, ${about}${count(used)} new tokens, ${Math.round(seconds)} s`;
      return [title, ...details.split("\n").filter((line) => line.startsWith("Cost: "))].join("\n");
    }
    default:
      return text;
  }
}

/** A line about an agent that joined or left. */
export function newsElement(event) {
  const verb = event.type === "joined" ? "joined" : event.removed ? "was removed" : "left";
  const why = event.type === "left" && event.reason && !verb.includes(event.reason) ? ` (${event.reason})` : "";
  const words = h("p", { class: "notice-text" });
  appendText(words, event.type === "redacted" ? `the text of ${event.message} was removed` : `${event.sender} ${verb}${why}`);
  const element = h("li", { class: "notice" }, words, time(event));
  element.dataset.seq = event.seq;
  return element;
}

function said(event, isLive) {
  const isOwn = event.sender === "human";
  const name = isOwn ? "you" : event.sender;
  return h("li", { class: `message${isOwn ? " own" : ""}${isLive ? " fresh" : ""}`, tabindex: "-1", "aria-keyshortcuts": "R Q F L", vars: { hue: hueOf(event.sender) } },
    h("span", { class: "avatar", "aria-hidden": "true" }, initials(name)),
    h("div", { class: "bubble" }, head(event, name, isLive), body(event), foot(event)),
  );
}

function head(event, name, isLive) {
  const isPlain = event.target === "" || event.target === "all" || event.target === "human";
  const to = isPlain && event.sender !== "human" ? null : event.target;
  return h("header", { class: "message-head" },
    h("b", { class: "name" }, name),
    to && h("span", { class: "to" }, `→ ${to}`),
    // It is unknown whether an old message's seal is broken by now, but a new message's seal is intact.
    isLive && event.sealed && h("span", { class: "mark sealed", data: { session: event.session_id } }, "sealed until all have answered"),
    ...marks(event),
    time(event),
  );
}

function marks(event) {
  const words = [
    event.urgent && "urgent",
    event.late && "late",
    event.out_of_turn && "out of turn",
    event.malformed && "not in the form that was asked for",
    ENDINGS[event.ending],
    event.final && "suggests finish",
    event.session_id && event.round && `round ${event.round}${event.max_rounds ? ` of ${event.max_rounds}` : ""}`,
    event.thread !== "default" && `thread ${event.thread}`,
  ];
  return words.filter(Boolean).map((word) => h("span", { class: "mark" }, word));
}

/** A reply that is a vote and nothing else. */
const VOTE = /^\s*VOTE:\s*\[?\s*([a-z]{1,2})\s*\]?[ .]*(?:\s*REASON:\s*([^\n]*?))?\s*$/i;

function body(event) {
  const place = h("div", { class: "body", dir: "auto" });
  const [, label, reason] = (event.sender !== "human" && VOTE.exec(event.text)) || [];
  if (label) {
    place.append(h("p", {}, h("b", {}, `✓ votes ${label.toUpperCase()}`)));
    if (reason) place.append(textElement("p", { dir: "auto" }, reason));
    return place;
  }
  showMarkdown(place, String(event.seq), event.text, { isSpeech: event.sender !== "human" });
  return place;
}

function foot(event) {
  return h("footer", { class: "message-foot" },
    // The text may say so itself.
    event.handoff && !event.text.includes(`@handoff.${event.handoff.to}`) && handoff(event.handoff),
    event.recipients?.length ? h("span", { class: "ticks" }) : null,
    event.usage && h("span", { class: "cost" }, usageText(event.usage)),
  );
}

function handoff({ to, task }) {
  const words = h("span", { class: "handoff", dir: "auto" }, h("span", {}, `hands over to ${to}: `));
  appendText(words, task);
  return words;
}

function usageText(usage) {
  const output = usage.output ?? 0;
  const cached = Math.min(usage.cache_read ?? 0, usage.input ?? 0);
  const about = usage.estimated ? "about " : "";
  const words = tokens({ new: (usage.input ?? 0) + output - cached, output, cached });
  return `${about}${words}${usage.cost_usd ? `, ${money(usage.cost_usd)}` : ""}`;
}

function time(event) {
  return h("time", { datetime: new Date(event.ts * 1000).toISOString(), title: `${moment(event.ts)} · #${event.seq}` }, clock(event.ts));
}
