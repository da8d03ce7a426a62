// Apply events to the page's lists, so that they need not be requested again.

/** States of a pending delivery. */
const PENDING = new Set(["queued", "held", "typed"]);
const REPLIES = new Set(["agent_response", "agent_call", "late"]);
/** States that the gateway derives from more than one event. */
const DERIVED = new Set(["paused", "benched", "offline"]);
/** The number of messages that the gateway lists, oldest first. */
const MOST = 1000;

/**
 * Apply an event to the agents; return the new list, or null if it must be requested again.
 * @param {any[]} agents  @param {any} event
 */
export function reduceAgents(agents, event) {
  const agent = agents.find((one) => one.id === event.sender);
  if (["joined", "left", "control"].includes(event.type)) return null;
  if (event.type === "turn" && ["timed_out", "failed"].includes(event.state)) return null;
  if (event.type === "mode" && agents.some((one) => one.state === "benched")) return null;
  // An agent that posts a message is no longer benched.
  if (REPLIES.has(event.type) && agent?.state === "benched") return null;
  if (event.type !== "state") return agents;
  if (!agent || DERIVED.has(agent.state) || (event.paused ?? null) !== null) return null;
  const { state, detail = "", until = null, dialog = null } = event;
  const changed = { ...agent, ...(state && { state, detail, until, dialog }), share: event.share ?? agent.share };
  return agents.map((one) => (one === agent ? changed : one));
}

/**
 * Apply an event to the waiting messages; return the new list, or null if it must be requested again.
 * @param {any[]} queue  @param {any[]} agents  @param {any} event
 */
export function reduceQueue(queue, agents, event) {
  if (["joined", "left", "control", "redacted"].includes(event.type)) return null;
  if (event.type === "delivery") return moved(queue, event);
  if (!event.recipients?.length || queue.length >= MOST) return queue;
  const state = event.held ? "held" : "queued";
  const fresh = event.recipients.filter((agent) => !queue.some((item) => item.id === event.id && item.agent === agent));
  const items = fresh.map((agent) => ({
    id: event.id, seq: event.seq, sender: event.sender, target: event.target, text: event.text, agent, state, at: event.ts,
    reason: event.held || whyWaits(agents, event, agent),
  }));
  return [...queue, ...items];
}

function moved(queue, { message, agent, state, reason = null }) {
  const at = queue.findIndex((item) => item.id === message && item.agent === agent);
  if (at < 0) return queue;
  return PENDING.has(state) ? queue.with(at, { ...queue[at], state, reason }) : queue.toSpliced(at, 1);
}

/** The reason for a wait, as far as the agent's state shows it. */
function whyWaits(agents, event, id) {
  if (event.waits?.includes(id)) return "turn";
  const state = agents.find((agent) => agent.id === id)?.state;
  return ["offline", "paused", "busy", "starting"].includes(state) ? state : null;
}

/**
 * Apply an event to the usage; return the new rows, or null if they must be requested again.
 * @param {any[]} rows  @param {any} event
 */
export function reduceUsage(rows, event) {
  if (!event.usage) return rows;
  if (!REPLIES.has(event.type)) return null; // the reply to a turn that continues may count the same usage again
  const { input = 0, output = 0, cache_read = 0, model = null, cost_usd = null, estimated = false } = event.usage;
  const none = { agent: event.sender, model, replies: 0, input: 0, output: 0, cost_usd: null, unpriced: 0, estimated: 0, cached: 0, new: 0 };
  const at = rows.findIndex((row) => row.agent === event.sender && row.model === model);
  const row = at < 0 ? none : rows[at];
  const cached = Math.min(cache_read, input);
  const sum = {
    ...row,
    replies: row.replies + 1,
    input: row.input + input,
    output: row.output + output,
    cost_usd: cost_usd === null ? row.cost_usd : (row.cost_usd ?? 0) + cost_usd,
    unpriced: row.unpriced + (cost_usd === null),
    estimated: row.estimated + Number(estimated),
    cached: row.cached + cached,
    new: row.new + input + output - cached,
  };
  return at < 0 ? [...rows, sum] : rows.with(at, sum);
}
