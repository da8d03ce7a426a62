// The entry point of a room's page.

import { startAddModel } from "./addmodel.js";
import { startAgents } from "./agents.js";
import { enter, forget, token } from "./access.js";
import { lockedOut, post } from "./api.js";
import { linked, startActions } from "./actions.js";
import { startAttention } from "./attention.js";
import { startBanner } from "./banner.js";
import { Board } from "./board.js";
import { Busy } from "./busy.js";
import { loadCatalogue } from "./catalogue.js";
import { Chat } from "./chat.js";
import { asked, startLists } from "./commands.js";
import { Composer } from "./composer.js";
import { byId, set, setText } from "./dom.js";
import { exportRoom } from "./export.js";
import { startKeys } from "./keys.js";
import { ModeForm } from "./modeform.js";
import { startNotifications } from "./notify.js";
import { Room } from "./room.js";
import { startRuns } from "./review.js";
import { Screens } from "./screens.js";
import { showWordsOf, startSearch } from "./search.js";
import { startSession } from "./session.js";
import { startSpending } from "./spending.js";
import { showTab, startTabs } from "./tabs.js";
import { clearLost } from "./toast.js";
import { startTheme } from "./theme.js";
import { Timeline } from "./timeline.js";
import { startVotes } from "./votes.js";

const STATUS = { connecting: "connecting…", live: "live", lost: "reconnecting…", refused: "signed out" };

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
    showGate("You have signed out.");
  });
}

function startStatus(room) {
  const draw = () => {
    setText(byId("room-name"), room.name);
    setText(byId("link-text"), STATUS[room.status]);
    set(byId("link"), { "data-status": room.status });
    if (room.status === "live") clearLost();
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
  const composer = new Composer(room);
  new ModeForm(room);
  new Timeline(room);
  new Board(room);
  new Busy(room);
  startAgents(room, look);
  startAttention(room, { look, write: (to) => composer.writeTo(to) });
  startActions(room, chat, composer);
  startLists();
  asked.on((wish) => {
    if (wish.look) look(wish.look);
    else if (wish.show) chat.show(wish.show);
    else if (wish.history) showWordsOf(wish.history, (seq) => chat.load(seq));
    else chat.toEnd();
  });
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

/** A message of the gateway as a sentence. */
const sentence = (text) => text && `${text[0].toUpperCase()}${text.slice(1).replace(/\.?$/, ".")}`;

async function start() {
  startTheme();
  startTabs();
  const problem = await enter().catch(() => "the gateway does not answer");
  if (!token()) return showGate(sentence(problem) || "This link has been used or has expired.");
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
  await chat.load(linked());
  window.addEventListener("hashchange", () => linked() && chat.show(linked()));
  // Keep the focus of a user who has started to search or write in the meantime.
  if (document.activeElement === document.body) byId("composer-text").focus();
}

start().catch((error) => showGate(error.message));
