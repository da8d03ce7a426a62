"""Claude Code, Codex and Gemini CLI call the tools of the room, which their sidecars have handed them.

test_real_scenes has one call by each for every day.
"""

import json
from collections.abc import Iterator
from functools import partial

import pytest

from csp.protocol.events import AgentCall, AgentResponse, NoticePosted, StateChanged, Voted
from tests.models.rules import Text
from tests.sidecar.calling import tool
from tests.sidecar.real_modes import PATIENCE_S, TRIO, Trio, plan_of, trio, when
from tests.waiting import wait_until_sync

pytestmark = [pytest.mark.full, pytest.mark.timeout(600), pytest.mark.xdist_group("real tools")]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    with trio(tmp_path_factory.mktemp("tools"), reaches_room=True) as room:
        room.server.add(when("are you there", reply="Here."))
        for name in TRIO:
            wait_until_sync(partial(has_tools, room, name), PATIENCE_S, f"tools of {name}")
        yield room


def has_tools(room: Trio, name: str) -> bool:
    """Tell whether a CLI, which waits for no server at its start, offers its model our tools by now."""
    room.reply_to(room.send(name, "are you there"), name, PATIENCE_S)
    return "board_search" in json.dumps(room.server.exchanges(name, "main")[-1].body)


@pytest.fixture
def room(shared: Trio) -> Trio:
    """The three at rest."""
    shared.rest()
    return shared


def test_each_sends_by_tool_once_in_its_own_name(room: Trio) -> None:
    for name in TRIO:
        words = f"I told you.\n\n@send.human by tool from {name}"
        send = tool(name, "send_message", to="human", text=f"by tool from {name}")
        room.server.add(when("please tell me", client=name, reply=[send, Text(text=words)]))
    for name in TRIO:
        message = room.send(name, "please tell me")
        assert room.reply_to(message, name, 60)["text"].startswith("I told you.")

    events = room.room.journal()
    sent = [(event.sender, event.text) for event in events if isinstance(event, AgentCall)]
    assert sorted(sent) == [(name, f"by tool from {name}") for name in TRIO]
    dropped = [event.target for event in events if isinstance(event, NoticePosted) and event.repeats]
    assert sorted(dropped) == sorted(TRIO)
    assert "needs_approval" not in states(room)


def states(room: Trio) -> set[str]:
    """Return every state that an agent has been in."""
    return {str(event.state) for event in room.room.journal() if isinstance(event, StateChanged)}


def test_each_finds_by_tool_what_stands_on_the_board(room: Trio) -> None:
    mark = "the kestrel build needs flag --with-feathers"
    room.room.gateway.post("/board", {"text": mark})
    for name in TRIO:
        search = tool(name, "board_search", query="which flag does the kestrel build need")
        add = tool(name, "board_add", text=f"{name} has read it")
        room.server.add(when("look it up", client=name, reply=[search, add, Text(text="Found.")]))
    for name in TRIO:
        room.reply_to(room.send(name, "look it up"), name, 60)
        seen = json.dumps(room.server.exchanges(name, "main")[-1].body)
        assert mark in seen, f"{name} was not shown it"

    notes = room.room.gateway.get("/board", session="room")["items"][1:]
    assert [(note["author"], note["text"]) for note in notes] == [
        (name, f"{name} has read it") for name in TRIO
    ]
    assert "needs_approval" not in states(room)


def test_a_debate_in_which_all_vote_by_tool_is_tallied(room: Trio) -> None:
    topic = "heron feathers"
    choices = {"claude": "codex", "codex": "claude", "gemini": "claude"}
    for voter, choice in choices.items():
        room.server.add(when(topic, "Present your position", client=voter, reply=plan_of(voter)))
        for label in "ABC":
            vote = tool(voter, "vote", label=label, reason=f"{voter} likes it")
            mark = f"Proposal {label}:\n{plan_of(choice)}"
            done = Text(text=f"{voter} has voted.")
            room.server.add(when(topic, "Vote on the proposals", mark, client=voter, reply=[vote, done]))
    session = room.begin("debate", topic, rounds=1, ballot=True)
    view = room.wait_end(session)

    assert view["reason"] == "done"
    votes = room.events(session, Voted)
    assert sorted(vote.sender for vote in votes) == list(TRIO)
    labels = {proposal["agent"]: name for name, proposal in view["proposals"].items()}
    cast = {voter: vote["label"] for voter, vote in view["votes"].items()}
    assert cast == {voter: labels[choice] for voter, choice in choices.items()}
    replies = [one.text for one in room.events(session, AgentResponse) if one.text.endswith("has voted.")]
    assert sorted(replies) == [f"{name} has voted." for name in TRIO]
    assert [len(room.asked(topic, name)) for name in TRIO] == [2, 2, 2]
    summary = "\n".join(event.text for event in room.events(session, NoticePosted))
    assert f"Votes: {labels['claude']} (claude) 2, {labels['codex']} (codex) 1." in summary
    assert "needs_approval" not in states(room)


def test_a_handoff_by_tool_acts_with_the_reply(room: Trio) -> None:
    topic = "otter dams"
    for name, following in (("claude", "codex"), ("codex", "gemini")):
        hand = tool(name, "handoff", to=following, task=f"the part of {following}")
        room.server.add(when(topic, client=name, reply=[hand, Text(text=f"{name} is done.")]))
    room.server.add(when(topic, client="gemini", reply="All is done.\n\n@final"))
    session = room.begin("collaborate", topic)
    view = room.wait_end(session)

    assert view["reason"] == "final"
    replies = room.events(session, AgentResponse)
    assert [one.sender for one in replies] == list(TRIO)
    assert "the part of gemini" in room.asked(topic, "gemini")[0]
