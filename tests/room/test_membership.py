"""The tests of coming, going and being controlled."""

import pytest

from csp.errors import BadInput, NotFound, Refused, TooMany
from csp.protocol.enums import (
    ALL,
    HUMAN,
    AgentId,
    AgentState,
    ControlVerb,
    DeliveryState,
    JoinRole,
    NoticeKind,
    ParticipantKind,
)
from csp.protocol.events import ControlSent, DeliveryMoved, Joined, Left, NoticePosted, StateChanged
from csp.protocol.requests import AgentNotice, Choice, Dialog
from csp.room.commands import ControlAgent, Join, Leave, Rejoin, Remove, SetState
from csp.room.membership import CONTROL_TTL_S
from tests.room.live import CLAUDE, CODEX, LiveRoom, one

CLAUDE_2 = AgentId("claude-2")
PASSING = [ControlVerb.INTERRUPT, ControlVerb.APPROVE, ControlVerb.DENY, ControlVerb.RESTART]


# --- coming --------------------------------------------------------------------------------------


def test_two_claudes_get_claude_and_claude_2() -> None:
    live = LiveRoom("Claude", "claude", "CLAUDE")

    assert list(live.room.participants) == ["claude", "claude-2", "claude-3"]


def test_join_is_told_to_all() -> None:
    event = one(
        LiveRoom().do(
            Join(
                name="Chef",
                kind=ParticipantKind.API,
                role=JoinRole.ORCHESTRATOR,
                capabilities={"tools": True},
            )
        ),
        Joined,
    )

    assert (event.sender, event.target, event.text) == ("chef", ALL, "chef joined")
    assert (event.name, event.kind, event.role) == ("Chef", ParticipantKind.API, JoinRole.ORCHESTRATOR)
    assert (event.epoch, event.capabilities) == (1, {"tools": True})


def test_newcomer_is_online_and_idle_and_shares_nothing() -> None:
    claude = LiveRoom("claude").agent(CLAUDE)

    assert (claude.shown_state, claude.paused, claude.share) == (AgentState.IDLE, False, False)


def test_reserved_name_cannot_join() -> None:
    LiveRoom().refuse(Join(name="Human"), BadInput)


def test_id_of_an_offline_owner_is_taken_over_with_a_new_epoch() -> None:
    live = LiveRoom("claude")
    live.do(Leave(agent=CLAUDE, reason="closed"))
    event = one(live.do(Join(name="claude", kind=ParticipantKind.API)), Joined)

    assert (event.sender, event.epoch) == ("claude", 2)
    assert (live.agent(CLAUDE).online, live.agent(CLAUDE).kind) == (True, ParticipantKind.API)


def test_id_that_is_taken_over_keeps_its_queue() -> None:
    live = LiveRoom("claude")
    live.do(Leave(agent=CLAUDE, reason="closed"))
    said = live.say(HUMAN, CLAUDE)
    live.do(Join(name="claude"))

    assert live.due(CLAUDE) == [said.id]


def test_a_launch_that_is_known_gets_its_id_again_although_it_looks_online() -> None:
    live = LiveRoom()
    first = one(live.do(Join(name="claude", launch="a")), Joined)
    second = one(live.do(Join(name="claude", launch="a")), Joined)

    assert (first.sender, second.sender) == (CLAUDE, CLAUDE)
    assert second.epoch == first.epoch + 1


@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("", ""), ("a", "")])
def test_another_launch_gets_another_id(first: str, second: str) -> None:
    live = LiveRoom()
    live.do(Join(name="claude", launch=first))
    live.do(Join(name="claude", launch=second))

    assert list(live.room.participants) == [CLAUDE, CLAUDE_2]


def test_a_new_owner_without_a_launch_is_not_found_by_the_old_one() -> None:
    live = LiveRoom()
    for command in (
        Join(name="claude", launch="a"),
        Leave(agent=CLAUDE, reason="closed"),
        Join(name="claude"),
    ):
        live.do(command)

    assert one(live.do(Join(name="claude", launch="a")), Joined).sender == CLAUDE_2


def test_a_sidecar_is_starting_until_it_says_otherwise() -> None:
    live = LiveRoom()
    live.do(Join(name="claude", launch="a"))
    joined = live.agent(CLAUDE).shown_state
    live.do(SetState(agent=CLAUDE, state=AgentState.IDLE))
    live.do(Rejoin(agent=CLAUDE, launch="b"))

    assert (joined, live.agent(CLAUDE).shown_state) == (AgentState.STARTING, AgentState.STARTING)


def test_a_sidecar_that_returns_ends_the_tokens_of_the_one_before_but_is_shared_as_before() -> None:
    live = LiveRoom()
    live.do(Join(name="claude", launch="a"))
    live.do(ControlAgent(agent=CLAUDE, verb=ControlVerb.SHARE))
    event = one(live.do(Rejoin(agent=CLAUDE, launch="b")), Joined)

    assert (event.epoch, live.agent(CLAUDE).share) == (2, True)


def test_the_same_launch_returns_once() -> None:
    live = LiveRoom()
    live.do(Join(name="claude", launch="a"))

    assert live.do(Rejoin(agent=CLAUDE, launch="a")) == []


def test_first_free_number_is_taken_over() -> None:
    live = LiveRoom("claude", "claude", "claude")
    live.do(Leave(agent=CLAUDE_2, reason="closed"))
    event = one(live.do(Join(name="claude")), Joined)

    assert (event.sender, event.epoch) == ("claude-2", 2)


def test_removed_id_comes_back_with_a_higher_epoch() -> None:
    live = LiveRoom("claude")
    live.do(Remove(agent=CLAUDE))
    event = one(live.do(Join(name="claude")), Joined)

    assert event.epoch == 2
    assert live.room.epochs == {}


def test_epoch_grows_over_many_removals() -> None:
    live = LiveRoom("claude")
    for _ in range(3):
        live.do(Remove(agent=CLAUDE))
        live.do(Join(name="claude"))

    assert live.agent(CLAUDE).epoch == 4


def test_removed_id_comes_back_without_pause_or_share() -> None:
    live = LiveRoom("claude")
    live.do(ControlAgent(agent=CLAUDE, verb=ControlVerb.SHARE))
    live.do(ControlAgent(agent=CLAUDE, verb=ControlVerb.PAUSE))
    live.do(Remove(agent=CLAUDE))
    live.do(Join(name="claude"))

    assert (live.agent(CLAUDE).share, live.agent(CLAUDE).paused) == (False, False)


def test_new_owner_of_an_id_shares_nothing_but_stays_paused() -> None:
    live = LiveRoom("claude")
    live.do(ControlAgent(agent=CLAUDE, verb=ControlVerb.SHARE))
    live.do(ControlAgent(agent=CLAUDE, verb=ControlVerb.PAUSE))
    live.do(Leave(agent=CLAUDE, reason="closed"))
    live.do(Join(name="claude"))

    assert (live.agent(CLAUDE).share, live.agent(CLAUDE).paused) == (False, True)


def test_full_room_takes_nobody_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.room.membership.MAX_PARTICIPANTS", 2)
    live = LiveRoom("claude", "codex")

    assert "csp remove" in live.refuse(Join(name="gemini"), TooMany).hint


def test_full_room_takes_who_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.room.membership.MAX_PARTICIPANTS", 2)
    live = LiveRoom("claude", "codex")
    live.do(Leave(agent=CLAUDE, reason="closed"))

    assert one(live.do(Join(name="claude")), Joined).sender == "claude"


# --- coming back ---------------------------------------------------------------------------------


def test_owner_comes_back_with_its_id_and_epoch() -> None:
    live = LiveRoom()
    live.do(Join(name="Claude", kind=ParticipantKind.MCP, capabilities=["a"]))
    live.do(Leave(agent=CLAUDE, reason="closed"))
    event = one(live.do(Rejoin(agent=CLAUDE)), Joined)

    assert (event.sender, event.epoch, event.name, event.kind) == ("claude", 1, "Claude", ParticipantKind.MCP)
    assert event.capabilities == ["a"]
    assert event.text == "claude is back"


def test_owner_keeps_pause_and_share() -> None:
    live = LiveRoom("claude")
    live.do(ControlAgent(agent=CLAUDE, verb=ControlVerb.SHARE))
    live.do(ControlAgent(agent=CLAUDE, verb=ControlVerb.PAUSE))
    live.do(Leave(agent=CLAUDE, reason="closed"))
    live.do(Rejoin(agent=CLAUDE))

    assert (live.agent(CLAUDE).share, live.agent(CLAUDE).paused) == (True, True)


def test_return_of_who_is_here_is_no_event() -> None:
    assert LiveRoom("claude").do(Rejoin(agent=CLAUDE)) == []


def test_return_with_other_capabilities_is_an_event() -> None:
    live = LiveRoom("claude")
    event = one(live.do(Rejoin(agent=CLAUDE, capabilities=["b"])), Joined)

    assert event.capabilities == live.agent(CLAUDE).capabilities == ["b"]


def test_return_of_the_removed_is_not_found() -> None:
    live = LiveRoom("claude", "codex")
    live.do(Remove(agent=CLAUDE))

    assert live.refuse(Rejoin(agent=CLAUDE), NotFound).hint == "known are: codex"


def test_return_forgets_what_the_participant_did_before() -> None:
    live = LiveRoom("claude")
    command = SetState(agent=CLAUDE, state=AgentState.LIMITED, detail="quota", until=2000.0, dialog=DIALOG)
    live.do(command)
    live.do(Leave(agent=CLAUDE, reason="closed"))
    live.do(Rejoin(agent=CLAUDE))
    claude = live.agent(CLAUDE)

    assert (claude.state, claude.detail, claude.until, claude.dialog) == (AgentState.IDLE, "", None, None)


# --- going ---------------------------------------------------------------------------------------


def test_leaving_is_told_with_its_reason() -> None:
    live = LiveRoom("claude")
    event = one(live.do(Leave(agent=CLAUDE, reason="crashed")), Left)

    assert (event.text, event.reason, event.removed) == ("claude left: crashed", "crashed", False)
    assert live.agent(CLAUDE).shown_state is AgentState.OFFLINE


def test_leaving_twice_is_one_event() -> None:
    live = LiveRoom("claude")
    live.do(Leave(agent=CLAUDE, reason="crashed"))

    assert live.do(Leave(agent=CLAUDE, reason="closed")) == []


def test_leaving_keeps_the_queue() -> None:
    live = LiveRoom("claude")
    said = live.say(HUMAN, CLAUDE)
    live.do(Leave(agent=CLAUDE, reason="closed"))

    assert live.shown(said.id, CLAUDE) == "held(offline)"
    assert live.due(CLAUDE) == [said.id]


def test_last_seen_is_when_it_left() -> None:
    live = LiveRoom("claude")
    live.now = 1234.5
    live.do(Leave(agent=CLAUDE, reason="closed"))

    assert live.agent(CLAUDE).seen == 1234.5


def test_removal_withdraws_what_waited_and_fails_what_was_typed() -> None:
    live = LiveRoom("claude", "codex")
    typed, queued, held = (live.say(HUMAN, CLAUDE) for _ in range(3))
    live.report(CLAUDE, typed.id, DeliveryState.TYPED)
    live.report(CLAUDE, held.id, DeliveryState.HELD, "busy")
    button = one(live.do(ControlAgent(agent=CLAUDE, verb=ControlVerb.DENY)), ControlSent)
    live.do(Remove(agent=CLAUDE))

    assert live.shown(typed.id, CLAUDE) == "failed(removed)"
    assert [live.shown(mid, CLAUDE) for mid in (queued.id, held.id, button.id)] == ["withdrawn"] * 3


def test_removal_leaves_other_recipients_alone() -> None:
    live = LiveRoom("claude", "codex")
    said = live.say(HUMAN, ALL)
    live.do(Remove(agent=CLAUDE))

    assert live.due(CODEX) == [said.id]


def test_removal_is_told_and_forgets_the_participant() -> None:
    live = LiveRoom("claude")
    event = one(live.do(Remove(agent=CLAUDE)), Left)

    assert (event.text, event.reason, event.removed) == ("claude was removed", "removed", True)
    assert live.room.participants == {}


def test_removal_of_the_offline_is_the_same() -> None:
    live = LiveRoom("claude")
    live.do(Leave(agent=CLAUDE, reason="closed"))
    live.do(Remove(agent=CLAUDE))

    assert (live.room.participants, live.room.epochs) == ({}, {"claude": 1})


def test_unknown_agent_gets_a_hint() -> None:
    error = LiveRoom("claude").refuse(Remove(agent=AgentId("cluade")), NotFound)

    assert (error.message, error.hint) == ("unknown agent 'cluade'", "did you mean 'claude'?")


# --- what a participant says of itself -----------------------------------------------------------


def test_state_is_told_with_its_detail() -> None:
    live = LiveRoom("claude")
    command = SetState(agent=CLAUDE, state=AgentState.LIMITED, detail="quota", until=2000.0)
    event = one(live.do(command), StateChanged)

    assert (event.text, event.sender, event.target) == ("claude is limited: quota", "claude", "all")
    assert (event.state, event.detail, event.until) == (AgentState.LIMITED, "quota", 2000.0)
    assert (event.paused, event.share) == (None, None)


def test_state_without_detail_is_told_in_three_words() -> None:
    event = one(LiveRoom("claude").do(SetState(agent=CLAUDE, state=AgentState.BUSY)), StateChanged)

    assert event.text == "claude is busy"


@pytest.mark.parametrize(
    ("detail", "until", "is_news"),
    [("quota", 2000.0, False), ("quota", 2001.0, True), ("other", 2000.0, True)],
)
def test_same_state_again_is_no_event(detail: str, until: float, is_news: bool) -> None:
    live = LiveRoom("claude")
    live.do(SetState(agent=CLAUDE, state=AgentState.LIMITED, detail="quota", until=2000.0))
    again = SetState(agent=CLAUDE, state=AgentState.LIMITED, detail=detail, until=until)

    assert bool(live.do(again)) == is_news


DIALOG = Dialog(tool="Bash", arguments="ls", choices=(Choice(number=1, label="Yes"),))


def test_dialog_is_part_of_the_state_until_the_next() -> None:
    live = LiveRoom("claude")
    asking = SetState(agent=CLAUDE, state=AgentState.NEEDS_APPROVAL, detail="Bash", dialog=DIALOG)
    event = one(live.do(asking), StateChanged)
    shown = live.agent(CLAUDE).dialog
    again = live.do(asking)
    live.do(SetState(agent=CLAUDE, state=AgentState.BUSY))

    assert (event.dialog, shown, again) == (DIALOG, DIALOG, [])
    assert live.agent(CLAUDE).dialog is None


def test_another_dialog_in_the_same_state_is_an_event() -> None:
    live = LiveRoom("claude")
    live.do(SetState(agent=CLAUDE, state=AgentState.NEEDS_APPROVAL, dialog=DIALOG))

    assert live.do(SetState(agent=CLAUDE, state=AgentState.NEEDS_APPROVAL, dialog=Dialog(tool="Write")))


@pytest.mark.parametrize(("detail", "reason"), [("", "closed"), ("ctrl-c", "ctrl-c")])
def test_saying_offline_is_leaving(detail: str, reason: str) -> None:
    live = LiveRoom("claude")
    event = one(live.do(SetState(agent=CLAUDE, state=AgentState.OFFLINE, detail=detail)), Left)

    assert event.reason == reason
    assert not live.agent(CLAUDE).online


# --- buttons -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "name", "before"),
    [
        (ControlVerb.PAUSE, "paused", False),
        (ControlVerb.RESUME, "paused", True),
        (ControlVerb.SHARE, "share", False),
        (ControlVerb.NOSHARE, "share", True),
    ],
)
@pytest.mark.parametrize("online", [True, False])
def test_lasting_button_is_remembered_and_sent_to_who_is_here(
    verb: ControlVerb, name: str, before: bool, online: bool
) -> None:
    live = LiveRoom("claude")
    setattr(live.agent(CLAUDE), name, before)
    live.agent(CLAUDE).online = online
    events = live.do(ControlAgent(agent=CLAUDE, verb=verb))

    assert getattr(live.agent(CLAUDE), name) is not before
    assert [type(event) for event in events] == [StateChanged, ControlSent][: 1 + online]
    assert events[0].text == f"claude: {verb}"


@pytest.mark.parametrize("verb", [ControlVerb.RESUME, ControlVerb.NOSHARE])
def test_lasting_button_that_changes_nothing_is_no_event(verb: ControlVerb) -> None:
    assert LiveRoom("claude").do(ControlAgent(agent=CLAUDE, verb=verb)) == []


@pytest.mark.parametrize("verb", PASSING)
def test_passing_button_is_one_urgent_delivery(verb: ControlVerb) -> None:
    live = LiveRoom("claude")
    (event,) = live.do(ControlAgent(agent=CLAUDE, verb=verb, choice=2))

    assert isinstance(event, ControlSent)
    assert (event.sender, event.target, event.control, event.choice) == ("human", "claude", verb, 2)
    assert event.expires == live.now + CONTROL_TTL_S
    assert live.due(CLAUDE) == [event.id]


@pytest.mark.parametrize("verb", PASSING)
def test_passing_button_needs_somebody_there(verb: ControlVerb) -> None:
    live = LiveRoom("claude")
    live.do(Leave(agent=CLAUDE, reason="closed"))

    assert "claude is offline" in live.refuse(ControlAgent(agent=CLAUDE, verb=verb), Refused).message


def test_every_button_is_lasting_or_passing() -> None:
    lasting = {ControlVerb.PAUSE, ControlVerb.RESUME, ControlVerb.SHARE, ControlVerb.NOSHARE}

    assert set(ControlVerb) == lasting | set(PASSING)


def test_removal_ends_each_delivery_once() -> None:
    live = LiveRoom("claude")
    said = live.say(HUMAN, CLAUDE)
    events = live.do(Remove(agent=CLAUDE))

    assert [event.message for event in events if isinstance(event, DeliveryMoved)] == [said.id]


# --- notices -------------------------------------------------------------------------------------


def told(live: LiveRoom, kind: NoticeKind, detail: str = "x-1") -> list[object]:
    notice = AgentNotice(kind=kind, detail=detail)
    return list(live.do(SetState(agent=CLAUDE, state=AgentState.IDLE, notice=notice)))


@pytest.mark.parametrize("kind", list(NoticeKind))
def test_a_notice_of_an_agent_is_told_to_people_alone(kind: NoticeKind) -> None:
    (notice, *_) = told(LiveRoom("claude"), kind)

    assert isinstance(notice, NoticePosted)
    assert (notice.sender, notice.target) == ("system", HUMAN)
    assert "claude" in notice.text and "x-1" in notice.text


def test_an_agent_that_was_given_a_file_is_paused_until_a_person_releases_it() -> None:
    live = LiveRoom("claude")
    told(live, NoticeKind.FILE_ATTACHED)
    again = told(live, NoticeKind.FILE_ATTACHED)

    assert live.agent(CLAUDE).shown_state is AgentState.PAUSED
    assert [type(event) for event in again] == [NoticePosted]
    live.do(ControlAgent(agent=CLAUDE, verb=ControlVerb.RESUME))
    assert live.agent(CLAUDE).shown_state is AgentState.IDLE


def test_other_notices_pause_nobody() -> None:
    live = LiveRoom("claude")
    for kind in set(NoticeKind) - {NoticeKind.FILE_ATTACHED}:
        told(live, kind)

    assert live.agent(CLAUDE).shown_state is AgentState.IDLE
