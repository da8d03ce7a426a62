// Agents' commands in words: what a line such as `@handoff.bob` or `VOTE: [A]` means.

const COMMAND = /^@(?:(send|handoff)\.([a-z0-9-]{1,32})|(all|working))(?=\s|$)\s*/i;
const VOTE = /^VOTE:\s*\[?\s*([a-z]{1,2})\s*\]?(?=[ .]|$)[ .]*/i;
const REASON = /^REASON:\s*/;

/**
 * Returns the beginning of an agent's line with its command in words, and the rest unchanged.
 * @param {string} text the text up to the next element
 * @param {boolean} isWhole whether this is the whole line
 * @returns {string}
 */
export function inWords(text, isWhole) {
  if (isWhole && text.trim() === "@final") return "✓ suggests finishing";
  const command = COMMAND.exec(text);
  if (command) {
    const rest = text.slice(command[0].length);
    return `${signOf(command)}${rest || !isWhole ? `: ${rest}` : ""}`;
  }
  const vote = VOTE.exec(text);
  if (vote) {
    const rest = text.slice(vote[0].length).replace(REASON, "");
    return `✓ votes ${vote[1].toUpperCase()}${rest || !isWhole ? `: ${rest}` : ""}`;
  }
  return text.replace(REASON, "reason: ");
}

function signOf([, verb, to, bare]) {
  if (verb) return verb.toLowerCase() === "send" ? `→ to ${to}` : `→ hands over to ${to}`;
  return bare.toLowerCase() === "all" ? "→ to all" : "· still working";
}
