// The page of a room.

import { startAddModel } from "./addmodel.js";
import { startAgents } from "./agents.js";
import { enter, forget, token } from "./access.js";
import { lockedOut, post } from "./api.js";
import { startApprovals } from "./approvals.js";
import { startBanner } from "./banner.js";
import { Board } from "./board.js";
import { Busy } from "./busy.js";
import { loadCatalogue } from "./catalogue.js";
import { Chat } from "./chat.js";
import { Composer } from "./composer.js";
import { byId, set, setText } from "./dom.js";
import { exportRoom } from "./export.js";
import { startKeys } from "./keys.js";
import { ModeForm } from "./modeform.js";
import { startNotifications } from "./notify.js";
import { Room } from "./room.js";
import { startRuns } from "./review.js";
import { Screens } from "./screens.js";
import { startSearch } from "./search.js";
import { startSession } from "./session.js";
import { startSpending } from "./spending.js";
import { showTab, startTabs } from "./tabs.js";
import { startTheme } from "./theme.js";
import { Timeline } from "./timeline.js";
import { startVotes } from "./votes.js";

const STATUS = { connecting: "connecting…", live: "live", lost: "connection lost, trying again…", refused: "not let in" };

function showGate(why) {
  document.body.dataset.room = "shut";
  set(byId("gate"), { hidden: false });
  setText(byId("gate-why"), why);
  byId("gate-title").focus();
}

function startMenu(room) {
  byId("export-md").addEventListener("click", () => exportRoom("md"));
  byId("export-json").addEventListener("click", () => exportRoom("json"));
  byId("leave").addEventListener("click", async () => {
    room.close();
    await post("/page/leave").catch(() => {});
    forget();
    showGate("You have left.");
  });
}

function startStatus(room) {
  const draw = () => {
    setText(byId("room-name"), room.name);
    setText(byId("link-text"), STATUS[room.status]);
    set(byId("link"), { "data-status": room.status });
    document.body.dataset.link = room.status;
  };
  room.statusChanged.on(draw);
  draw();
}

function startParts(room) {
  const screens = new Screens(room);
  const look = (agent) => {
    screens.choose(agent);
    showTab("screens");
    byId("screens-panel").focus();
  };
  const chat = new Chat(room);
  new Composer(room);
  new ModeForm(room);
  new Timeline(room);
  new Board(room);
  new Busy(room);
  startAgents(room, look);
  startApprovals(room, look);
  startSession(room);
  startVotes(room);
  startRuns(room);
  startSpending(room);
  startBanner(room);
  startNotifications(room);
  startSearch((seq) => chat.load(seq));
  startAddModel(room);
  startKeys(room);
  startMenu(room);
  startStatus(room);
  return chat;
}

async function start() {
  startTheme();
  startTabs();
  const problem = await enter().catch(() => "the gateway does not answer");
  if (!token()) return showGate(problem || "This link has been used or has expired.");
  const room = new Room();
  lockedOut.on((why) => {
    room.close();
    showGate(why);
  });
  await loadCatalogue();
  const chat = startParts(room);
  document.body.dataset.room = "open";
  await room.open();
  room.statusChanged.tell();
  await chat.load();
  // Who has begun to search or to write meanwhile goes on there.
  if (document.activeElement === document.body) byId("composer-text").focus();
}

start().catch((error) => showGate(error.message));
