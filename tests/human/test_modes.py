"""Modes in the human pane, before a real gateway: what is typed, what is shown of them."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.human.scene import Agent, Pane, come, join, open_pane
from tests.rooms import LiveRoom
from tests.waiting import wait_until_sync

DEBATE = '/mode debate "tabs or spaces" --rounds 2 --agents codex,claude'
LONG = "because " * 40


pytestmark = pytest.mark.xdist_group("modes in the human pane")


@pytest.fixture
def agents(room: LiveRoom, pane: Pane) -> tuple[Agent, Agent]:
    return come(room, pane, "claude"), come(room, pane, "codex")


def mode(room: LiveRoom) -> dict[str, Any]:
    answer: dict[str, Any] = room.gateway.get("/mode")
    return answer


def test_a_debate_runs_from_its_command_to_its_end(
    room: LiveRoom, pane: Pane, agents: tuple[Agent, Agent]
) -> None:
    claude, codex = agents
    pane.type(f"{DEBATE} --first claude --synth codex --ballot")
    pane.wait_for(r"Debate 1/2 · claude \+1 [12]:\d\d")
    assert mode(room)["turnOrder"] == ["claude", "codex"]
    claude.take_turn("tabs " + LONG)
    codex.take_turn("spaces " + LONG)
    pane.wait_for(r"Debate 2/2 · claude [12]:\d\d")
    claude.take_turn("still tabs")
    codex.take_turn("still spaces")
    pane.wait_for(r"Debate 2/2 ballot · claude \+1")
    pane.type("/votes")
    pane.wait_for("the vote on 2 proposals is open, waiting for claude, codex")
    for agent in agents:
        agent.take_turn(f"VOTE: [A]\nREASON: {agent.id} is sure")
    pane.wait_for("Debate 2/2 synthesis · codex")
    codex.take_turn("Use tabs.")
    pane.wait_for(r"DEBATE complete\.")
    pane.wait_gone("Debate 2/2")
    pane.type("/votes")
    pane.wait_history(r"^  claude voted A(?: \(its own\))?: claude is sure$")
    text = pane.history()

    heads = [line.split(" · ")[1] for line in text.splitlines() if re.match(r"\d\d:\d\d #\d+ · ", line)]
    assert heads[:2] == ["Mode: DEBATE", "Topic: tabs or spaces"]
    # The bottom line has said whose turn it is, in which round.
    assert not any("turn" in head or head.startswith("Round") for head in heads)
    assert len(re.findall(r"^\d\d:\d\d #\d+ claude \(sealed\)\n  tabs because", text, re.MULTILINE)) == 1
    assert len(re.findall(r"^\d\d:\d\d #\d+ claude: still tabs$", text, re.MULTILINE)) == 1
    assert "YOUR TURN" not in text and "Say what you think" not in text
    assert "VOTE:" not in text and len(re.findall(r"^  ✓ votes A$", text, re.MULTILINE)) == 2
    assert re.search(r"^votes: A \(\w+\) [12]", text, re.MULTILINE)


def test_a_topic_and_a_replacement_are_asked_for(
    room: LiveRoom, pane: Pane, agents: tuple[Agent, Agent]
) -> None:
    pane.type("/mode debate --rounds 2")
    pane.wait_for(r"^\? What is the topic\? \(an empty line cancels\)$")
    pane.wait_for("^debate topic>")
    pane.type("tabs or spaces")
    pane.wait_for(r"Debate 1/2 · claude \+1 [12]:\d\d")
    first = mode(room)
    pane.type("/mode autopilot go on")
    pane.wait_for("^stop debate y/N>")
    pane.type("no")
    pane.wait_for("^· not done$")
    assert (mode(room)["sessionId"], first["topic"]) == (first["sessionId"], "tabs or spaces")
    pane.type("/mode autopilot go on")
    pane.wait_for("^stop debate y/N>")
    pane.type("y")

    pane.wait_for(r"Autopilot turn 1 · claude")
    assert room.gateway.get(f"/sessions/{first['sessionId']}")["orchestration"]["reason"] == "superseded"


def test_notices_break_between_words(room: LiveRoom, pane: Pane, agents: tuple[Agent, Agent]) -> None:
    claude, codex = agents
    pane.type(f"/mode round_robin {'because ' * 25} --steps 2")
    claude.take_turn("one")
    codex.take_turn("two")
    pane.wait_for(r"Round robin summary \(finished after 2 replies\): ")
    text = pane.history()
    topic = text[text.index("Topic: ") :].splitlines()

    assert {word for word in " ".join(topic).split() if word.startswith("be")} == {"because"}
    assert re.match(r" {11,}because", topic[1])
    # What the summary has of the replies was read above it.
    assert not re.search("^ *- (claude|codex): ", text, re.MULTILINE)


def test_the_router_starts_a_collaboration(room: LiveRoom, pane: Pane, agents: tuple[Agent, Agent]) -> None:
    claude, codex = agents
    pane.type("@router collaborate codex claude: build a parser")
    pane.wait_for(r"Collaborate 1/6 · codex [12]:\d\d")
    assert mode(room)["topic"] == "build a parser"
    codex.take_turn("a first draft\n@handoff.claude read it")
    pane.wait_for(r"Collaborate 2/6 · claude")
    claude.take_turn("fine\n@final")

    pane.wait_for(r"COLLABORATE complete\.")
    pane.wait_gone("Collaborate 2/6")


def test_a_mode_is_paused_resumed_extended_skipped(
    room: LiveRoom, pane: Pane, agents: tuple[Agent, Agent]
) -> None:
    pane.type("/mode round_robin go --steps 3 --first codex")
    pane.wait_for(r"Round robin 1/3 · codex [12]:\d\d")
    pane.type("/pause")
    pane.wait_for(r"Round robin 1/3 \(paused\) · codex(?! \d)")
    assert mode(room)["status"] == "paused"
    pane.type("/pause")
    pane.wait_for("round_robin is paused already")
    pane.type("/resume")
    pane.wait_for(r"Round robin 1/3 · codex [12]:\d\d")
    pane.type("/extend 2")
    pane.wait_for(r"Round robin 1/5 · codex")
    pane.type("/skip")
    pane.wait_for(r"codex was skipped\.")
    pane.wait_for(r"Round robin 2/5 · claude")
    pane.type("/skip codex")
    pane.wait_for("codex has no open turn in s-")
    pane.type("/next")
    pane.wait_for(r"Round robin 3/5 · codex")
    pane.type("/status")
    pane.wait_for("^  turns, waiting for codex$")
    pane.type("/end")
    pane.wait_for(r"Round robin canceled\.")
    pane.wait_gone(r"\| Round robin 3/5")
    text = pane.history()

    for said in ("ROUND_ROBIN paused.", "ROUND_ROBIN resumed.", "Extended by 2 rounds.", "Mode: FREEFORM"):
        assert text.count(said) == 1, said
    assert mode(room)["reason"] == "canceled"


@pytest.mark.parametrize("keys", [b"/stop\r", b"Allstop\r", b"half a line\x1b[24~"])
def test_stop_ends_it_at_once(room: LiveRoom, pane: Pane, agents: tuple[Agent, Agent], keys: bytes) -> None:
    pane.type("/mode autopilot go on")
    pane.wait_for(r"Autopilot turn 1 · claude [12]:\d\d")
    pane.send(keys)
    pane.wait_for(r"Autopilot stopped \(Allstop\)\.")
    pane.wait_gone("Autopilot turn 1")

    assert mode(room)["reason"] == "stopped_by_user"


def test_stop_all_stops_every_mode_and_f12_that_of_the_room(
    room: LiveRoom, pane: Pane, agents: tuple[Agent, Agent]
) -> None:
    come(room, pane, "gemini")
    body = {"mode": "autopilot", "topic": "go on"}
    aside = [
        room.gateway.post("/sessions", body | {"thread": f"of-{agent}", "agents": [agent]})["id"]
        for agent in ("codex", "gemini")
    ]
    pane.type("/mode autopilot go on --agents claude")
    pane.wait_for("Autopilot turn 1 · claude ")
    main = mode(room)["sessionId"]
    pane.send(b"\x1b[24~")
    pane.wait_gone("Autopilot turn 1")
    assert running_sessions(room) == {*aside}
    pane.type("/stop all")
    wait_until_sync(lambda: not running_sessions(room), 60.0, "the end of all modes")

    ends = {item: room.gateway.get(f"/sessions/{item}")["orchestration"]["reason"] for item in (main, *aside)}
    assert set(ends.values()) == {"stopped_by_user"}


def running_sessions(room: LiveRoom) -> set[str]:
    return {item["id"] for item in room.gateway.get("/sessions")["items"] if item["status"] == "running"}


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("single", "Single 1/2 · claude"),
        ("collaborate", "Collaborate 1/6 · claude"),
        ("autopilot", "Autopilot turn 1 · claude"),
        ("round_robin", "Round robin 1/10 · claude"),
        ("orchestrator", "Orchestrator turn 1 · claude"),
        ("debate", r"Debate 1/3 · claude \+1"),
        ("consensus", r"Consensus 1/2 · claude \+1"),
    ],
)
def test_every_mode_can_be_begun(
    room: LiveRoom, pane: Pane, agents: tuple[Agent, Agent], name: str, first: str
) -> None:
    pane.type(f"/mode {name} a goal")

    pane.wait_for(first)


def test_a_note_of_work_and_a_second_asking_are_one_line_each(
    room: LiveRoom, pane: Pane, agents: tuple[Agent, Agent]
) -> None:
    claude, codex = agents
    pane.type("/mode consensus which name")
    claude.take_turn("call it one")
    codex.take_turn("call it two")
    pane.wait_for("Consensus 2/2")
    claude.take_turn("I like both")
    pane.wait_for("claude is asked once more: the form of its answer was wrong$")
    pane.type("/stop")
    pane.wait_gone("Consensus 2/2")
    pane.type("/mode autopilot go --first codex")
    pane.wait_for("Autopilot turn 1 · codex")
    codex.take_turn("@working reading the tests")

    pane.wait_for("codex is working: reading the tests")


def test_the_clock_goes_on_after_a_restart_of_the_gateway(tmp_path: Path) -> None:
    env = {"CSP_TURN_TIMEOUT_MS": "600000", "CSP_TURN_WARN_MS": "500000"}
    with LiveRoom(tmp_path, env=env) as room:
        claude = join(room, "claude")
        join(room, "codex")
        with open_pane(room) as pane:
            pane.type("/mode round_robin go --steps 2")
            pane.wait_for(r"Round robin 1/2 · claude (9:\d\d|10:00)")
            deadline = mode(room)["deadline"]
            claude.report(claude.next_turn(), "confirmed")
            room.kill9()
            pane.wait_for("NO GATEWAY")
            room.start()
            pane.wait_gone("NO GATEWAY")
            pane.wait_for(r"Round robin 1/2 · claude (9:\d\d|10:00)")

            # It runs from the arrival of the prompt, to the end of the turn, not to the warning before.
            assert 0 <= mode(room)["deadline"] - deadline < 60
            pane.type("/stop")
            pane.wait_gone(r"\| Round robin")


def test_a_failure_is_told_once(room: LiveRoom, pane: Pane, agents: tuple[Agent, Agent]) -> None:
    claude, _ = agents
    claude.set_state("needs_approval", detail="may it?")
    pane.wait_for("▲ claude asks")
    pane.type("/approve claude")
    claude.report(claude.next_item(), "failed", "the dialog is gone")
    pane.wait_for("✗ claude: the dialog is gone")
    claude.say("human", "and then")
    pane.wait_for("and then")

    assert pane.history().count("the dialog is gone") == 1


def test_who_is_removed_is_removed_once(room: LiveRoom, pane: Pane, agents: tuple[Agent, Agent]) -> None:
    pane.type("/remove codex")

    pane.wait_for("codex was removed$")


def test_lines_that_come_at_once_are_one_message(
    room: LiveRoom, pane: Pane, agents: tuple[Agent, Agent]
) -> None:
    text = "\r".join(f"line {number}" for number in range(200))
    pane.send(f"{text}\r".encode())
    pane.wait_for("200 lines to all: Enter sends them as one message")

    def is_sent() -> bool:
        # Right behind the lines, an Enter is one of theirs.
        pane.send(b"\r")
        return "more lines from you, sent whole" in pane.history()

    wait_until_sync(is_sent, what="the lines on their way")
    items = wait_until_sync(lambda: agents[0].gateway.get("/inbox/claude")["items"], what="the message")

    assert [item["text"] for item in items] == ["\n".join(text.split("\r"))]


def test_two_lines_typed_ahead_are_two_messages(
    room: LiveRoom, pane: Pane, agents: tuple[Agent, Agent]
) -> None:
    pane.send(b"@claude one\r@claude two\r@claude three\r")

    assert agents[0].next_item("three")["text"] == "three"
    assert agents[0].next_item("one")["text"] == "one"


def test_a_run_is_begun_shown_and_decided_in_the_pane(
    room: LiveRoom, pane: Pane, agents: tuple[Agent, Agent]
) -> None:
    claude, codex = agents
    pane.type("/review start 'mend it' --builder claude --reviewer codex --run-id mine")
    pane.wait_for("started mine: claude builds, codex reviews")
    codex.take_turn("ACK: ready")
    claude.take_turn("PLAN: mend\n1. one")
    codex.take_turn("RISK: high")
    pane.wait_for(r"^▲ mine needs you: approve the plan\?\n  mend it\n  the reviewer rates the risk as high$")
    pane.type("/review show")
    pane.wait_for("waits for: human")
    pane.type("/review start 'half")
    pane.wait_for("a quote is not closed")
    pane.type("/review abort mine not today")
    pane.wait_for("REVIEW ended: it was aborted")


def test_a_review_is_a_mode_like_the_others(room: LiveRoom, pane: Pane, agents: tuple[Agent, Agent]) -> None:
    pane.type('/mode review "mend it" --agents claude,codex')
    pane.wait_for(r"Run run-\d+: claude builds, codex reviews")
    wait_until_sync(lambda: mode(room)["waitingFor"] == ["codex"], what="turn of codex")

    assert (mode(room)["mode"], mode(room)["phase"]) == ("review", "start")
