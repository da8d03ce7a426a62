"""Modes in the real room of the demo: typed in its human pane, shown in its status line."""

import re
import shlex
from typing import Any, Final

import pexpect
import pytest

from csp.errors import Forbidden
from csp.http_client import GatewayClient
from tests.panes.place import Place

#: Wide enough that nothing a test looks for is broken into two rows.
_ROWS: Final = 50
_COLS: Final = 200


pytestmark = pytest.mark.xdist_group("modes in panes")


class Demo:
    """A demo room that all tests share, seen from where a test began."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.seq = 0

    def begin(self, *agents: str) -> None:
        """Have these agents there and at rest, with an empty human pane and nothing running."""
        place = self.place
        if not set(agents) <= set(place.online()):
            place.up("--demo", *(["--orchestrator"] if "orchestrator" in agents else []))
        place.gateway.post("/stop", {"all": True})
        for agent, state in place.online().items():
            if state == "paused":
                place.gateway.post(f"/agents/{agent}/resume", {})
        place.wait(lambda: {place.online().get(agent) for agent in agents} == {"idle"}, "agents at rest")
        place.wait(lambda: status(place) == "", "an empty status line")
        type_in(place, "@all")
        place.wait(lambda: "→all>" in place.screen("human"), "the prompt")
        for agent in ("human", *agents):
            pane = str(place.pane(agent)["id"])
            place.tmux("send-keys", "-t", pane, "C-l")
            place.tmux("clear-history", "-t", pane)
        items = place.gateway.get("/history", limit=1)["items"]
        self.seq = items[-1]["seq"] if items else 0

    def notices(self, text: str) -> list[str]:
        items = self.items("system")
        return [item["text"] for item in items if text in item["text"]]

    def items(self, types: str) -> list[dict[str, Any]]:
        """Return what has come into the history since the test began."""
        found: list[dict[str, Any]] = self.place.gateway.get(
            "/history", types=types, after=self.seq, limit=1000
        )["items"]
        return found


@pytest.fixture(scope="module")
def shared_demo(shared_place: Place) -> Demo:
    """A demo room whose agents answer at once."""
    shared_place.set(CSP_DEMO_SPEED="0")
    shared_place.up("--demo")
    return Demo(shared_place)


@pytest.fixture
def demo(shared_demo: Demo) -> Place:
    shared_demo.begin("ada", "bob", "cy")
    return shared_demo.place


@pytest.fixture
def conducted(shared_demo: Demo) -> Demo:
    """The same room with its orchestrator."""
    shared_demo.begin("ada", "bob", "cy", "orchestrator")
    return shared_demo


def type_in(place: Place, line: str, agent: str = "human") -> None:
    pane = str(place.pane(agent)["id"])
    place.tmux("send-keys", "-t", pane, "-l", line)
    place.tmux("send-keys", "-t", pane, "Enter")


def scrollback(place: Place, agent: str) -> str:
    return place.tmux("capture-pane", "-p", "-J", "-S", "-", "-t", str(place.pane(agent)["id"]))


def status(place: Place) -> str:
    """Return the mode in the status line of the session, as tmux draws it."""
    shown = place.tmux("display-message", "-p", "-t", "csp", "#{T:status-right}")
    found = re.match(r"(.*?) \| ", shown)
    return found[1] if found else ""


def mode(place: Place) -> dict[str, Any]:
    answer: dict[str, Any] = place.gateway.get("/mode")
    return answer


def has_ended(place: Place, topic: str) -> bool:
    """Tell whether the last mode was this one and has ended."""
    found = mode(place)
    return bool(found["topic"] == topic and found["status"] == "ended")


def test_a_debate_typed_in_the_room_pane_runs_to_its_end(demo: Place) -> None:
    # Who is paused gets no turn typed in, so the debate stands still where a test wants to look at it.
    type_in(demo, "/pause cy")
    demo.wait(lambda: demo.pane("cy")["state"] == "paused", "the pause")
    assert status(demo) == ""
    type_in(demo, '/mode debate "tabs or spaces" --rounds 2')
    demo.wait(lambda: re.fullmatch(r"Debate 1/2 · cy [12]:\d\d", status(demo)), "the first round, cy's clock")
    demo.wait(lambda: re.search(r"Debate 1/2 · cy [12]:\d\d", demo.screen("human")), "the same in the pane")
    assert demo.tmux("show-options", "-v", "-t", "csp", "status-interval") == "1\n"
    type_in(demo, "/resume cy")
    demo.wait(lambda: mode(demo)["status"] == "ended", "the end of the debate")
    demo.wait(lambda: "DEBATE complete." in scrollback(demo, "human"), "the notice of the end")
    demo.wait(lambda: status(demo) == "", "an empty status line")

    text = scrollback(demo, "human")
    for said in (
        "Mode: DEBATE",
        "Topic: tabs or spaces",
        "DEBATE complete.",
        "Debate summary (finished after ",
    ):
        assert said in text
    # The status line has said whose turn it is.
    assert "Your turn" not in text
    assert mode(demo)["reason"] == "done"
    assert set(mode(demo)["roundOutputs"]) == {"ada", "bob", "cy"}
    assert "Debate" not in demo.screen("human").splitlines()[-1]
    assert demo.tmux("show-options", "-v", "-t", "csp", "status-interval") == ""
    assert demo.tmux("show-options", "-gv", "status-right").count("@csp_mode") == 0


def test_a_mode_is_steered_from_the_room_pane(demo: Place, shared_demo: Demo) -> None:
    for agent in ("ada", "bob"):
        type_in(demo, f"/pause {agent}")
        demo.wait(lambda: demo.pane(agent)["state"] == "paused", "the pause")  # noqa: B023
    type_in(demo, "/mode round_robin go --steps 3 --agents ada,bob")
    demo.wait(lambda: status(demo).startswith("Round robin 1/3 · ada "), "ada's turn")
    type_in(demo, "/pause")
    demo.wait(lambda: status(demo) == "Round robin 1/3 (paused) · ada", "no clock in a pause")
    type_in(demo, "/resume")
    demo.wait(lambda: status(demo).startswith("Round robin 1/3 · ada "), "the clock again")
    type_in(demo, "/extend 1")
    demo.wait(lambda: status(demo).startswith("Round robin 1/4 · ada "), "one more round")
    type_in(demo, "/skip")
    demo.wait(lambda: status(demo).startswith("Round robin 2/4 · bob "), "bob's turn")
    type_in(demo, "/stop")
    demo.wait(lambda: status(demo) == "", "an empty status line")

    assert mode(demo)["reason"] == "stopped_by_user"
    assert shared_demo.notices("Collaboration stopped by user (Allstop).")


def test_the_borders_say_whose_turn_it_is(demo: Place) -> None:
    # A turn is not typed into a draft, so ada rests while it is hers.
    demo.tmux("send-keys", "-t", str(demo.pane("ada")["id"]), "-l", "a draft")
    demo.wait(lambda: "a draft" in demo.screen("ada"), "the draft")
    type_in(demo, "/mode round_robin go --steps 2 --agents ada,bob")
    demo.wait(lambda: demo.pane("ada")["state"] == "YOUR TURN", "ada's turn")
    demo.wait(lambda: demo.pane("bob")["state"] == "WAITING", "bob's wait")
    assert (border(demo, "ada"), border(demo, "bob")) == ("ada [YOUR TURN]", "bob [WAITING]")
    demo.up("--agents", "ada")
    assert [demo.pane(agent)["state"] for agent in ("ada", "bob")] == ["YOUR TURN", "WAITING"]
    for shown in (demo.csp("agents").out, demo.csp("status").out):
        assert re.search(r"^ada +\[YOUR TURN\]  demo", shown, re.M) and re.search(
            r"^bob +\[WAITING\] +demo", shown, re.M
        )
    type_in(demo, "/agents")
    shown_in_the_pane = r"^bob +\[WAITING\] +demo"
    demo.wait(lambda: re.search(shown_in_the_pane, scrollback(demo, "human"), re.M), "it in the pane")
    type_in(demo, "/stop")

    demo.wait(lambda: [demo.pane(agent)["state"] for agent in ("ada", "bob")] == ["idle", "idle"], "freeform")
    assert "WAITING" not in demo.csp("agents").out
    demo.tmux("send-keys", "-t", str(demo.pane("ada")["id"]), "C-u")
    demo.wait(lambda: "a draft" not in demo.screen("ada"), "an empty composer")


def border(place: Place, agent: str) -> str:
    """Return the border of a pane as it can be read without colour."""
    return re.sub(r"#\[[^]]*\]", "", place.border(agent))


def test_f12_in_the_room_pane_stops_the_mode_and_keeps_what_is_typed(demo: Place, shared_demo: Demo) -> None:
    for agent in ("ada", "bob"):
        type_in(demo, f"/pause {agent}")
        demo.wait(lambda: demo.pane(agent)["state"] == "paused", "the pause")  # noqa: B023
    type_in(demo, "/mode round_robin one --steps 3 --agents ada")
    demo.wait(lambda: status(demo).startswith("Round robin 1/3 · ada "), "the first mode")
    demo.tmux("send-keys", "-t", str(demo.pane("human")["id"]), "-l", "half a line")
    demo.tmux("send-keys", "-t", str(demo.pane("human")["id"]), "F12")
    demo.wait(lambda: mode(demo)["status"] == "ended", "the end of the mode")

    assert mode(demo)["reason"] == "stopped_by_user"
    demo.wait(lambda: shared_demo.notices("Collaboration stopped by user (Allstop)."), "the notice")
    demo.wait(lambda: "→all> half a line" in demo.screen("human"), "what was being typed")
    demo.tmux("send-keys", "-t", str(demo.pane("human")["id"]), "C-c")
    demo.wait(lambda: status(demo) == "", "an empty status line")


def test_votes_with_their_reasons_are_shown_in_the_room_pane(demo: Place) -> None:
    type_in(demo, "/mode consensus which name for the tool")
    demo.wait(lambda: has_ended(demo, "which name for the tool"), "the end of the consensus")
    type_in(demo, "/votes")
    demo.wait(
        lambda: re.search(r"^votes: [ABC] \((ada|bob|cy)\) \d", scrollback(demo, "human"), re.M), "the tally"
    )

    text = scrollback(demo, "human")
    cast = mode(demo)["votes"]
    assert set(cast) == {"ada", "bob", "cy"}
    for agent, vote in cast.items():
        assert re.search(rf"^  {agent} voted {vote['label']}.*: \S", text, re.M), agent


def test_the_status_line_is_right_after_a_restart_of_the_gateway(demo: Place) -> None:
    type_in(demo, "/pause ada")
    demo.wait(lambda: demo.pane("ada")["state"] == "paused", "the pause")
    type_in(demo, "/mode round_robin go --steps 2 --agents ada,bob")
    demo.wait(lambda: status(demo).startswith("Round robin 1/2 · ada "), "ada's turn")
    before = demo.room.pid
    demo.tmux("run-shell", f"kill -9 {before}")
    demo.wait(lambda: demo.room.pid != before and mode(demo)["status"] == "running", "the next gateway")
    type_in(demo, "/skip")
    demo.wait(lambda: mode(demo)["status"] == "ended", "the end")

    demo.wait(lambda: status(demo) == "", "an empty status line")


# --- the orchestrator ----------------------------------------------------------------------------


def test_wakeups_arrive_in_the_pane_of_the_orchestrator(conducted: Demo) -> None:
    demo = conducted.place
    type_in(demo, '/mode debate "now or later" --rounds 2 --agents ada,bob --synth ada')
    demo.wait(lambda: has_ended(demo, "now or later"), "the end of the debate")
    demo.wait(lambda: scrollback(demo, "orchestrator").count("digest of debate") == 2, "two digests")
    demo.wait(lambda: demo.online()["orchestrator"] == "idle", "its rest")

    text = scrollback(demo, "orchestrator")
    assert "round 1 is over" in text
    assert "YOUR TURN" not in text
    assert [item["target"] for item in conducted.items("answer")] == ["orchestrator", "orchestrator"]
    assert conducted.notices("has not answered") == []


@pytest.mark.full
def test_a_silent_orchestrator_is_told_once(place: Place) -> None:
    demo, told = place, Demo(place)
    demo.set(CSP_DEMO_SPEED="0", CSP_TURN_WARN_MS="1000", CSP_TURN_TIMEOUT_MS="3000")
    demo.up("--demo", "--orchestrator")
    type_in(demo, "/pause orchestrator")
    demo.wait(lambda: demo.pane("orchestrator")["state"] == "paused", "the pause")
    for topic in ("one", "two"):
        type_in(demo, f"/mode debate {topic} or not --rounds 2 --agents ada,bob --synth ada")
        demo.wait(lambda: has_ended(demo, f"{topic} or not"), "the end of a debate")  # noqa: B023
    demo.wait(lambda: told.notices("has not answered"), "the warning")
    demo.wait(lambda: "has not answered 2 wake-ups" in scrollback(demo, "human"), "it in the pane")
    type_in(demo, "/resume orchestrator")
    demo.wait(lambda: scrollback(demo, "orchestrator").count("digest of debate") == 4, "all digests")

    assert told.notices("has not answered") == [
        "Orchestrator orchestrator has not answered 2 wake-ups. It is paused. Sessions continue without it."
    ]


def test_the_orchestrator_sets_a_mode_and_another_agent_cannot(conducted: Demo) -> None:
    demo = conducted.place
    type_in(demo, '@orchestrator start a debate on "cats or dogs" in 2 rounds')
    demo.wait(lambda: mode(demo)["topic"] == "cats or dogs" and mode(demo)["status"] == "ended", "its debate")
    eve = GatewayClient(demo.room.url, demo.gateway.post("/register", {"agentId": "eve"})["token"])
    for command in ('@mode.set debate "mine"', "@mode.status"):
        eve.post("/agent-output", {"content": f"I lead now\n{command}"})
    with pytest.raises(Forbidden):
        eve.post("/mode", {"mode": "debate", "topic": "mine"})

    items = conducted.items("mode")
    assert [item["sender"] for item in items if item["change"] == "started"] == ["orchestrator"]
    assert len(conducted.notices("only the orchestrator may ask for or set the mode")) == 2
    assert eve.get("/inbox/eve")["items"] == []
    demo.gateway.delete("/agents/eve")


# --- leaving, coming back ------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["/quit\r", "\x04"])
def test_quit_in_the_room_pane_detaches_and_the_room_goes_on(demo: Place, way: str) -> None:
    client = pexpect.spawn(
        "tmux", ["attach", "-t", "csp"], env=demo.env, dimensions=(_ROWS, _COLS), encoding="utf-8", timeout=30
    )
    demo.wait(lambda: demo.attached() == ["csp"], "the client")
    client.expect("→all>")
    client.send(way)
    client.expect("detached")
    demo.wait(lambda: demo.attached() == [], "nobody attached")

    assert not demo.pane("human")["dead"]
    demo.wait(lambda: "resume: csp up · stop: csp down" in scrollback(demo, "human"), "a word")
    demo.csp("pause", "ada")
    demo.wait(lambda: demo.pane("ada")["state"] == "paused", "borders that are still kept true")
    client.close(force=True)


def test_quit_in_another_pane_of_the_session_ends_that_pane(demo: Place) -> None:
    chat = shlex.join([*demo.command, "chat"])
    window = ("new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "csp:", "-n", "mine", "-c", str(demo.dir))
    pane = demo.tmux(*window, chat).strip()
    demo.wait(lambda: "→all>" in demo.tmux("capture-pane", "-p", "-t", pane), "the second chat")
    demo.tmux("send-keys", "-t", pane, "C-d")

    demo.wait(lambda: pane not in demo.tmux("list-panes", "-s", "-t", "csp", "-F", "#{pane_id}"), "its end")
    assert not demo.pane("human")["dead"]


def test_an_agent_whose_pane_has_ended_is_started_again(demo: Place) -> None:
    for agent in ("ada", "bob"):
        demo.tmux("send-keys", "-t", str(demo.pane(agent)["id"]), "C-d")
        demo.wait(lambda: demo.pane(agent)["dead"], "its end")  # noqa: B023
    demo.wait(lambda: not {"ada", "bob"} & set(demo.online()), "two who are gone")
    type_in(demo, "/restart ada")
    demo.wait(lambda: "ada is here again" in scrollback(demo, "human"), "ada", 60)

    assert {"ada", "cy"} <= set(demo.online()) and "bob" not in demo.online()
    assert not demo.pane("ada")["dead"]
    assert demo.pane("bob")["dead"]


def test_an_agent_is_added_from_the_room_pane(demo: Place) -> None:
    words = " --profile demo -- " + shlex.join([*demo.command, "demo", "bob"])
    type_in(demo, f"/add ada{words}")
    demo.wait(lambda: "ada is already in the room" in scrollback(demo, "human"), "the refusal")
    type_in(demo, f"/add ada-2{words}")
    there = re.compile(r"ada-2 is here \(\w+\)")
    demo.wait(lambda: there.search(scrollback(demo, "human")), "ada-2")
    type_in(demo, "/add bad --profile generic -- sh -c 'echo no key here; exit 3'")

    demo.wait(lambda: "bad has ended: no key here" in scrollback(demo, "human"), "why bad has ended")
    demo.wait(lambda: {"ada", "ada-2"} <= set(demo.online()), "the two who are there")
    demo.wait(lambda: "bad" not in demo.online(), "the end of bad")
    for agent in ("ada-2", "bad"):
        demo.csp("remove", agent)
