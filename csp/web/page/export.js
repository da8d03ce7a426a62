// Save the complete history as a file.

import { get } from "./api.js";
import { h } from "./dom.js";
import { tell } from "./toast.js";

const PAGE = 1000;

/** @param {"md" | "json"} format */
export async function exportRoom(format) {
  try {
    const { room } = await get("/health");
    const items = await everything();
    const text = format === "json" ? JSON.stringify(items, null, 1) : markdown(room, items);
    save(`${room}.${format}`, text, format === "json" ? "application/json" : "text/markdown");
    return true;
  } catch (error) {
    tell(error.message, { isError: true, hint: error.hint });
    return false;
  }
}

async function everything() {
  const items = [];
  let after = 0;
  for (;;) {
    const page = await get(`/history?limit=${PAGE}&after=${after}`);
    items.push(...page.items);
    if (page.items.length < PAGE) return items;
    after = page.items.at(-1).seq;
    tell(`reading: ${items.length} messages so far`);
  }
}

/** The same document as printed by `csp export --format md`. */
function markdown(room, items) {
  const lines = [`# Room ${room}`];
  let day = "";
  for (const item of items) {
    const when = new Date(item.ts * 1000);
    const today = when.toLocaleDateString("sv-SE");
    if (today !== day) lines.push("", `## ${today}`);
    day = today;
    const to = item.target ? ` to ${item.target}` : "";
    lines.push("", `**${item.sender}**${to} · ${when.toLocaleTimeString("sv-SE")} · ${item.id}`, "");
    lines.push(...item.text.split(/\r\n|\r|\n/).map((line) => `> ${line}`.trimEnd()));
  }
  return `${lines.join("\n")}\n`;
}

/** Make the browser save a text as a file. */
export function save(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = h("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
