"""Approval rules: what they answer, what they never answer, how they are given and removed."""

import pytest

from csp.errors import BadInput, NotFound, Refused
from csp.protocol.enums import HUMAN, AgentState, ControlVerb, DeliveryState
from csp.protocol.events import ControlSent, KnownEvent, NoticePosted
from csp.protocol.notices import NoticeCode
from csp.protocol.requests import Choice, Dialog
from csp.room.approvals import MAX_RULES, rules_of
from csp.room.attention import attention
from csp.room.commands import (
    AllowCommand,
    AllowedCommand,
    ControlAgent,
    DisallowCommand,
    Join,
    Leave,
    Remove,
    RoomRules,
    SetState,
)
from csp.room.messages import pending
from csp.room.room_state import dump, load
from tests.room.live import CLAUDE, CODEX, LiveRoom, one


def asks(
    play: LiveRoom,
    command: str = "pytest -q",
    *,
    state: AgentState = AgentState.NEEDS_APPROVAL,
    kind: str = "permission",
    runs: str | None = None,
    choices: tuple[Choice, ...] = (),
) -> list[KnownEvent]:
    dialog = Dialog(tool="Bash", arguments=command, runs=command if runs is None else runs, choices=choices)
    return play.do(SetState(agent=CLAUDE, state=state, dialog=dialog, asks=kind))


def pressed(events: list[KnownEvent]) -> list[ControlSent]:
    return [event for event in events if isinstance(event, ControlSent)]


@pytest.fixture
def play() -> LiveRoom:
    room = LiveRoom("claude", "codex")
    room.do(AllowCommand(agent=CLAUDE, pattern="pytest"))
    return room


def test_a_covered_command_is_approved_with_a_notice_that_names_the_rule(play: LiveRoom) -> None:
    number = play.journal[-1].seq
    events = asks(play)
    control, notice = one(events, ControlSent), one(events, NoticePosted)

    assert (control.control, control.about, control.target) == (ControlVerb.APPROVE, "pytest -q", CLAUDE)
    assert (notice.code, notice.target) == (NoticeCode.APPROVED_BY_RULE, HUMAN)
    assert notice.text == (
        f"claude: approved by rule #{number} (pytest): pytest -q. To stop this: csp unallow {number}"
    )
    assert attention(play.room, play.now) == ()
    assert [item.about for item in pending(play.room, CLAUDE)] == ["pytest -q"]


def test_parts_of_one_dialog_are_approved_once(play: LiveRoom) -> None:
    assert pressed(asks(play))
    assert not pressed(asks(play, choices=(Choice(number=1, label="Yes"),)))


def test_a_command_that_is_asked_for_again_is_approved_again(play: LiveRoom) -> None:
    control = one(asks(play), ControlSent)
    play.report(CLAUDE, control.id, DeliveryState.CONFIRMED)

    assert not pressed(asks(play, "pytest -q; rm -rf build"))
    assert pressed(asks(play))


def test_the_next_command_is_judged_by_itself(play: LiveRoom) -> None:
    asks(play)
    assert not pressed(asks(play, "rm -rf build"))
    assert pressed(asks(play, "pytest tests"))


@pytest.mark.parametrize(
    "command", ["pytest; rm x", "pytest && rm x", "pytest | sh", "pytest\nrm x", "pytest $(rm x)", "rm x"]
)
def test_what_no_rule_covers_is_left_to_a_person(play: LiveRoom, command: str) -> None:
    assert not pressed(asks(play, command))
    assert [item.id for item in attention(play.room, play.now)] == ["approval:claude"]


def test_only_what_the_cli_calls_a_command_is_approved(play: LiveRoom) -> None:
    # Words on a screen, arguments that were cut and other tools have no whole command.
    assert not pressed(asks(play, runs=""))


@pytest.mark.parametrize("kind", ["menu", "trust", "login", "question"])
def test_only_a_permission_is_approved(play: LiveRoom, kind: str) -> None:
    assert not pressed(asks(play, kind=kind))


def test_a_blocking_screen_is_not_approved(play: LiveRoom) -> None:
    assert not pressed(asks(play, state=AgentState.NEEDS_HUMAN))


def test_a_rule_is_of_one_agent(play: LiveRoom) -> None:
    dialog = Dialog(tool="Bash", runs="pytest")
    state = SetState(agent=CODEX, state=AgentState.NEEDS_APPROVAL, dialog=dialog, asks="permission")

    assert not pressed(play.do(state))


def test_a_dialog_that_a_person_has_answered_is_not_approved_too() -> None:
    play = LiveRoom("claude")
    asks(play)
    play.do(ControlAgent(agent=CLAUDE, verb=ControlVerb.DENY))

    assert not pressed(play.do(AllowCommand(agent=CLAUDE, pattern="pytest")))


def test_a_new_rule_answers_the_open_dialog() -> None:
    play = LiveRoom("claude")
    asks(play)

    assert pressed(play.do(AllowCommand(agent=CLAUDE, pattern="pytest -q")))


def test_a_failed_key_leaves_the_dialog_to_a_person(play: LiveRoom) -> None:
    control = one(asks(play), ControlSent)
    play.report(CLAUDE, control.id, DeliveryState.FAILED, "the dialog is about something else")

    assert [item.id for item in attention(play.room, play.now)] == ["approval:claude"]


def test_a_removed_rule_approves_nothing(play: LiveRoom) -> None:
    (rule,) = rules_of(play.room, play.rules)
    play.do(DisallowCommand(number=rule.number))

    assert rules_of(play.room, play.rules) == []
    assert not pressed(asks(play))


def test_an_unknown_rule_cannot_be_removed(play: LiveRoom) -> None:
    (rule,) = rules_of(play.room, play.rules)

    assert play.refuse(DisallowCommand(number=7777), NotFound).hint == f"known: {rule.number}; see: csp rules"


@pytest.mark.parametrize("pattern", ["pytest; rm", "a\nb", " ", "$X", "pytest > x", "only"])
def test_a_rule_has_no_shell_syntax(play: LiveRoom, pattern: str) -> None:
    if "\n" in pattern:
        # The words of a rule are one line, whatever stood between them.
        play.do(AllowCommand(agent=CLAUDE, pattern=pattern))
        assert rules_of(play.room, play.rules)[-1].pattern == "a b"
    else:
        play.refuse(AllowCommand(agent=CLAUDE, pattern=pattern), BadInput)


def test_the_same_rule_is_given_once(play: LiveRoom) -> None:
    assert play.do(AllowCommand(agent=CLAUDE, pattern=" pytest ")) == []


def test_rules_are_for_agents_of_the_room(play: LiveRoom) -> None:
    assert "unknown agent" in play.refuse(AllowCommand(agent=HUMAN, pattern="ls"), NotFound).message


def test_the_number_of_rules_is_limited(play: LiveRoom) -> None:
    for number in range(MAX_RULES - 1):
        play.do(AllowCommand(agent=CLAUDE, pattern=f"ls {number}"))

    play.refuse(AllowCommand(agent=CLAUDE, pattern="one more"), Refused)


def test_rules_survive_a_restart_of_the_agent_and_a_snapshot(play: LiveRoom) -> None:
    play.do(Leave(agent=CLAUDE, reason="closed"))
    play.do(Join(name="claude", launch="l-2"))
    play.room = load(dump(play.room))

    assert pressed(asks(play))


def test_rules_go_with_the_agent_that_is_removed(play: LiveRoom) -> None:
    play.do(Remove(agent=CLAUDE))
    play.do(Join(name="claude"))

    assert not pressed(asks(play))


def test_rules_of_the_settings_count_too() -> None:
    rules = RoomRules(allowed=(AllowedCommand(agent="claude", pattern="make test"),))
    play = LiveRoom("claude", rules=rules)
    events = asks(play, "make test -j2")

    assert pressed(events)
    assert "approved by rule csp.toml (make test)" in one(events, NoticePosted).text
    assert [rule.number for rule in rules_of(play.room, rules)] == [0]
