// Add an API model to the room.

import { act } from "./api.js";
import { setProblem } from "./ask.js";
import { byId, set } from "./dom.js";
import { attempt, tell } from "./toast.js";

/** @param {import("./room.js").Room} room */
export function startAddModel(room) {
  const dialog = byId("add-model");
  byId("add-model-open").addEventListener("click", () => dialog.showModal());
  byId("add-model-cancel").addEventListener("click", () => dialog.close());
  byId("add-model-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!isRight(room)) return;
    set(byId("add-model-start"), { disabled: true, "aria-busy": "true" });
    const given = [...new FormData(event.target)].map(([name, value]) => [name, String(value).trim()]);
    const joined = await attempt(act("/agents", Object.fromEntries(given.filter(([, value]) => value))));
    set(byId("add-model-start"), { disabled: false, "aria-busy": null });
    if (!joined) return;
    dialog.close();
    tell(`${joined.agentId ?? joined.id ?? "the model"} joined`);
    room.refresh();
  });
}

/** Show what is wrong at each field; return whether the form is complete. */
function isRight(room) {
  const fields = { "add-model-name": "Enter a name.", "add-model-model": "Enter a model." };
  const missing = Object.keys(fields).filter((id) => !byId(id).value.trim());
  for (const [id, words] of Object.entries(fields)) setProblem(id, missing.includes(id) ? words : "");
  const name = byId("add-model-name").value.trim().toLowerCase();
  const isTaken = room.agents.some((agent) => agent.online && agent.id === name);
  if (isTaken) setProblem("add-model-name", `${name} is already in the room. Enter another name.`);
  return !missing.length && !isTaken;
}
