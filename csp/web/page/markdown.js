/**
 * Shows texts as markdown, which the gateway parses.
 *
 * A text is shown as it is until its tokens arrive. They are requested in batches and cached for texts that
 * are shown again.
 */

import { CallError, get } from "./api.js";
import { keep } from "./dom.js";
import { renderPlain, renderTokens } from "./render.js";

const MOST_KEPT = 600;
const MOST_ASKED = 60;
const TRIED_AGAIN_MS = 3000;
// A short text without any of these is one paragraph.
const LONGEST_PLAIN = 1000;
const SIGNS = /[\n*_~`[\]<>#|\\:+=-]|^\s*\d/;

/** @type {Map<string, {text: string, length: number, tokens: any[]}>} */
const kept = new Map();
/** @type {Map<string, {text: string, place: HTMLElement, options: {isSpeech?: boolean}}>} */
const wanted = new Map();
let isAsking = false;

/**
 * Shows a text in an empty element.
 * @param {HTMLElement} place
 * @param {string} id the seq of a message or the id of a note
 * @param {string} text
 * @param {{isSpeech?: boolean}} [options]
 */
export function showMarkdown(place, id, text, options = {}) {
  const isPlain = text.length <= LONGEST_PLAIN && !SIGNS.test(text);
  const known = isPlain ? { text, length: text.length, tokens: [["p"], text, null] } : kept.get(id);
  if (known?.text === text) {
    place.append(renderTokens(text, known, options));
    return;
  }
  place.append(renderPlain(text));
  wanted.set(id, { text, place, options });
  askSoon(0);
}

function askSoon(waitMs) {
  if (isAsking) return;
  isAsking = true;
  setTimeout(async () => {
    const againMs = await ask();
    isAsking = false;
    if (wanted.size) askSoon(againMs);
  }, waitMs);
}

/** Requests the tokens of the newest pending texts; returns the delay before the next request. */
async function ask() {
  const asked = [...wanted].slice(-MOST_ASKED);
  for (const [id] of asked) wanted.delete(id);
  const answer = await get(`/markdown?ids=${asked.map(([id]) => id)}`).catch((error) => error);
  if (answer instanceof CallError) {
    if (answer.status === 0 || answer.status === 429 || answer.status >= 500) wantAgain(asked);
    return TRIED_AGAIN_MS;
  }
  const items = answer.items ?? {};
  const found = asked.filter(([id]) => items[id]);
  keepingPlace(() => found.forEach(([id, entry]) => take(id, entry, items[id])));
  // Long texts may have left no space for others in this batch; texts without any tokens cannot be parsed.
  if (found.length) wantAgain(asked.filter(([id]) => !items[id]));
  return 0;
}

function wantAgain(asked) {
  for (const [id, entry] of asked) {
    if (!wanted.has(id) && entry.place.isConnected) wanted.set(id, entry);
  }
}

function take(id, { text, place, options }, { length, tokens }) {
  const entry = { text, length, tokens };
  keep(kept, id, entry, MOST_KEPT);
  // Keep the text as it is if the user has expanded it in the meantime.
  const isOpened = length < text.length && !place.querySelector(".more");
  if (!isOpened) place.replaceChildren(renderTokens(text, entry, options));
}

/** Replaces texts without moving the user's reading position. */
function keepingPlace(change) {
  const scroller = document.getElementById("log-scroller");
  const top = scroller?.getBoundingClientRect().top;
  const first = [...(scroller?.querySelectorAll("[data-seq]") ?? [])].find((one) => one.getBoundingClientRect().top >= top);
  const before = first?.getBoundingClientRect().top;
  change();
  if (first) scroller.scrollTop += first.getBoundingClientRect().top - before;
}
