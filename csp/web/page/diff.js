// The diff of a review run, split into files and lines.

import { h } from "./dom.js";
import { textElement } from "./text.js";
import { several } from "./words.js";

/** No lines beyond this number are drawn; the run's folder contains all of them. */
const MOST_LINES = 4000;
const KINDS = { "+": "added", "-": "removed", "@": "place", "\\": "place" };

/**
 * Split a patch into its files.
 * @param {string} patch
 * @returns {{name: string, added: number, removed: number, lines: string[]}[]}
 */
export function filesOf(patch) {
  const files = [];
  let isInHunk = false;
  for (const line of patch.split("\n")) {
    const file = files.at(-1);
    if (line.startsWith("diff --git ")) {
      files.push({ name: nameIn(line), added: 0, removed: 0, lines: [] });
      isInHunk = false;
    } else if (!file) continue;
    else if (line.startsWith("@@")) {
      isInHunk = true;
      file.lines.push(line);
    } else if (isInHunk) {
      if (line.startsWith("+")) file.added += 1;
      if (line.startsWith("-")) file.removed += 1;
      if (line) file.lines.push(line);
    } else if (line.startsWith("+++ ") && line !== "+++ /dev/null") file.name = line.slice(4).replace(/^b\//, "");
    else if (/^(new file|deleted file|rename|Binary files|GIT binary)/.test(line)) file.lines.push(line);
  }
  return files;
}

/** The name after the change, from "diff --git a/x b/x". */
const nameIn = (line) => / b\/(.*)$/.exec(line)?.[1] ?? line.slice("diff --git ".length);

/** The figures of a diff; the gateway omits those that are zero. */
export const figuresText = ({ files = 0, insertions = 0, deletions = 0 }) => `${several(files, "file")}, +${insertions} −${deletions}`;

/**
 * @param {{diff?: string, figures?: {files?: number, insertions?: number, deletions?: number, bytes?: number}}} update
 * @returns {HTMLElement}
 */
export function diffElement({ diff = "", figures }) {
  const files = filesOf(diff);
  const sum = (name) => files.reduce((all, file) => all + file[name], 0);
  const counts = figures ?? { files: files.length, insertions: sum("added"), deletions: sum("removed") };
  const isCut = figures?.bytes > new TextEncoder().encode(diff).length;
  let left = MOST_LINES;
  const elements = files.map((file) => {
    const shown = file.lines.slice(0, left);
    left -= shown.length;
    return fileElement({ ...file, isCut: shown.length < file.lines.length, lines: shown });
  });
  return h("div", { class: "diff" },
    h("p", { class: "hint" }, `Diff from git: ${figuresText(counts)}`),
    ...elements,
    isCut && h("p", { class: "hint" }, "The rest of the diff is in the folder of the run."));
}

function fileElement({ name, added, removed, lines, isCut }) {
  return h("details", { class: "diff-file" },
    h("summary", {}, textElement("span", { class: "diff-name", dir: "auto" }, name), h("span", { class: "diff-count" }, `+${added} −${removed}`)),
    h("pre", { class: "diff-lines", tabindex: "0", "aria-label": `Diff of ${name}` },
      ...lines.map((line) => textElement("span", { class: KINDS[line[0]] ?? "same" }, line)),
      isCut && h("span", { class: "place" }, "…")));
}
