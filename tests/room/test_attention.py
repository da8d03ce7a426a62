"""What needs a person: each kind, its answers, and that an answered item is gone."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from csp.protocol.attention import AttentionItem, AttentionKind, AttentionLevel
from csp.protocol.enums import (
    ALL,
    HUMAN,
    AgentState,
    ControlVerb,
    DeliveryState,
    HeldReason,
    ParticipantKind,
    SessionAction,
)
from csp.protocol.events import ControlSent, type_of
from csp.protocol.requests import Choice, Dialog, Usage
from csp.protocol.review_messages import Decision, RunAction, RunPhase
from csp.protocol.session_parts import EndReason, Limits
from csp.room.approval_rules import MAX_PATTERN
from csp.room.attention import EVENTS, attention
from csp.room.commands import (
    CancelMessage,
    ControlAgent,
    Join,
    Leave,
    RedactMessage,
    ReleaseMessage,
    Remove,
    SetState,
    Steer,
)
from csp.room.human_input import CommandLine, SetTarget, read_line
from csp.room.room_state import Room, dump, load
from tests.room.live import CLAUDE, CODEX, GEMINI, LiveRoom, one
from tests.room.playing import Play
from tests.room.reviewing import Reviewing

K = AttentionKind
CHOICES = (
    Choice(number=1, label="Yes"),
    Choice(number=2, label="Yes, and don't ask again for pytest"),
    Choice(number=3, label="No, and tell Claude what to do"),
)
BASH = Dialog(tool="Bash", arguments='{"command":"pytest -q","description":"Run"}', runs="pytest -q")


def items_of(play: LiveRoom) -> tuple[AttentionItem, ...]:
    return attention(play.room, play.now)


def only(play: LiveRoom) -> AttentionItem:
    (item,) = items_of(play)
    return item


def lines(item: AttentionItem) -> dict[str, str]:
    return {answer.key: answer.line for answer in item.answers}


def asks(
    play: LiveRoom,
    dialog: Dialog | None = BASH,
    state: AgentState = AgentState.NEEDS_APPROVAL,
    kind: str = "",
    detail: str = "",
) -> None:
    play.do(SetState(agent=CLAUDE, state=state, dialog=dialog, asks=kind, detail=detail))


# --- one way to each kind ------------------------------------------------------------------------


def an_approval() -> LiveRoom:
    room = LiveRoom("claude")
    asks(room, kind="permission")
    return room


def _screen(kind: str) -> Callable[[], LiveRoom]:
    def play() -> LiveRoom:
        room = LiveRoom("claude")
        asks(room, None, AgentState.NEEDS_HUMAN, kind, "it says so")
        return room

    return play


def a_menu() -> LiveRoom:
    room = LiveRoom("claude")
    asks(room, Dialog(question="Which model?", choices=CHOICES), kind="menu")
    return room


def a_question() -> LiveRoom:
    room = LiveRoom("claude")
    room.say(CLAUDE, HUMAN, "It is done. Shall I push it?")
    return room


def a_plan() -> LiveRoom:
    return Reviewing(approve=True).to(RunPhase.APPROVAL)


def an_escalation() -> LiveRoom:
    play = Reviewing(max_revisions=0).to(RunPhase.DECISION)
    play.revise("FINDING: major - it is wrong")
    return play


def a_halt() -> LiveRoom:
    play = Reviewing().to(RunPhase.EXECUTION)
    play.act(RunAction.HALT)
    return play


def a_tie() -> Play:
    play = Play()
    play.start("consensus")
    play.reply_all()
    for _ in range(2):
        labels = {one.agent: one.label for one in play.session.stage.candidates}
        play.reply(CLAUDE, f"VOTE: [{labels[CODEX]}]")
        play.reply(CODEX, f"VOTE: [{labels[CLAUDE]}]")
        play.reply(GEMINI, "NOOP")
    assert play.ended is EndReason.TIE
    return play


def a_limit_reached() -> Play:
    play = Play()
    play.start("debate", limits=Limits(tokens=10), rounds=3)
    play.reply(play.waiting[0], usage=Usage(input=8, output=4))
    assert play.ended is EndReason.EMERGENCY_TOKENS
    return play


def a_limit_near() -> Play:
    play = Play()
    play.start("debate", limits=Limits(tokens=1000), rounds=3)
    play.reply(play.waiting[0], usage=Usage(input=800, output=50))
    return play


def a_held_message() -> LiveRoom:
    room = LiveRoom("claude", "codex")
    said = room.say(HUMAN, CLAUDE)
    for number in range(20):
        sender, to = (CLAUDE, CODEX) if number % 2 == 0 else (CODEX, CLAUDE)
        said = room.say(sender, to, f"reply {number}", reply_to=said.id)
        if said.held:
            return room
    raise AssertionError("the loop guard held nothing")


def a_limit() -> LiveRoom:
    room = LiveRoom("claude")
    room.do(SetState(agent=CLAUDE, state=AgentState.LIMITED, detail="5-hour limit", until=2000.0))
    return room


def an_end() -> LiveRoom:
    room = LiveRoom()
    room.do(Join(name="claude", launch="l-1"))
    room.do(Leave(agent=CLAUDE, reason="closed"))
    return room


def a_stuck_text() -> LiveRoom:
    room = LiveRoom("claude")
    said = room.say(HUMAN, CLAUDE)
    room.report(CLAUDE, said.id, DeliveryState.HELD, HeldReason.STUCK)
    return room


WAYS: dict[str, tuple[AttentionKind, Callable[[], LiveRoom]]] = {
    "approval": (K.APPROVAL, an_approval),
    "login": (K.LOGIN, _screen("login")),
    "trust": (K.TRUST, _screen("trust")),
    "onboarding": (K.DIALOG, _screen("onboarding")),
    "lost": (K.STUCK, _screen("")),
    "menu": (K.DIALOG, a_menu),
    "question": (K.QUESTION, a_question),
    "plan": (K.PLAN, a_plan),
    "escalation": (K.DECISION, an_escalation),
    "halt": (K.DECISION, a_halt),
    "tie": (K.TIE, a_tie),
    "limit reached": (K.BUDGET, a_limit_reached),
    "limit near": (K.BUDGET, a_limit_near),
    "held": (K.HELD, a_held_message),
    "limited": (K.LIMITED, a_limit),
    "ended": (K.ENDED, an_end),
    "stuck": (K.STUCK, a_stuck_text),
}


@pytest.mark.parametrize("way", WAYS)
def test_each_cause_is_one_item_of_its_kind(way: str) -> None:
    kind, play = WAYS[way]

    assert only(play()).kind is kind


def test_every_kind_has_a_way() -> None:
    assert {kind for kind, _ in WAYS.values()} == set(AttentionKind)


@pytest.mark.parametrize("way", WAYS)
def test_each_answer_is_a_line_that_can_be_typed(way: str) -> None:
    item = only(WAYS[way][1]())

    assert item.answers and item.title and item.since > 0
    assert len({answer.key for answer in item.answers}) == len(item.answers)
    for answer in item.answers:
        assert answer.key and answer.label
        assert isinstance(read_line(answer.line), CommandLine | SetTarget), answer.line


@pytest.mark.parametrize("way", WAYS)
def test_the_list_survives_a_snapshot(way: str) -> None:
    play = WAYS[way][1]()

    assert attention(load(dump(play.room)), play.now) == items_of(play)


def test_nothing_is_wanted_of_a_person_in_an_idle_room() -> None:
    assert items_of(LiveRoom("claude", "codex")) == ()
    assert attention(Room(), 0.0) == ()


# --- dialogs ---------------------------------------------------------------------------------------


def test_an_approval_shows_its_command_and_not_its_json() -> None:
    play = LiveRoom("claude")
    asks(play, Dialog(tool="Bash", arguments='{"command":"pytest -q && rm -rf build"}', choices=CHOICES))
    item = only(play)

    assert item.id == "approval:claude"
    assert item.detail == "pytest -q && rm -rf build"
    assert item.title == "claude asks to run a command"
    assert lines(item) == {
        "y": "/approve claude 1",
        "2": "/approve claude 2",
        "n": "/deny claude 3",
        "f": "/focus claude",
    }


@pytest.mark.parametrize(
    ("arguments", "detail"),
    [
        ('{"file_path":"/a.py","old_string":"x"}', "/a.py"),
        ('{"url":"https://example.org"}', "https://example.org"),
        ('{"cmd":["git","push"]}', "git push"),
        ('{"questions":[1]}', '{"questions":[1]}'),
        ("rm -rf build", "rm -rf build"),
        ("7", "7"),
        ('{"command":"cut in the mid', '{"command":"cut in the mid'),
    ],
)
def test_the_detail_is_what_the_tool_is_about(arguments: str, detail: str) -> None:
    play = LiveRoom("claude")
    asks(play, Dialog(tool="Tool", arguments=arguments))

    assert only(play).detail == detail


def test_the_command_on_a_screen_comes_first() -> None:
    play = LiveRoom("claude")
    on_screen = "Environment: local\n\nReason: it asks\n\n$ pytest -q &&\n  rm -rf build"
    asks(play, Dialog(arguments=on_screen, question="Would you like to run the following command?"))
    item = only(play)

    assert item.title == "claude asks to run a command"
    assert item.detail == "$ pytest -q &&\n  rm -rf build\nEnvironment: local\n\nReason: it asks"


def test_an_approval_of_nothing_known_says_no_more() -> None:
    play = LiveRoom("claude")
    asks(play, Dialog())

    assert only(play).title == "claude asks for your approval"


def test_a_dialog_without_choices_takes_a_plain_yes_and_no() -> None:
    assert lines(only(an_approval())) == {
        "y": "/approve claude",
        "n": "/deny claude",
        "a": "/allow claude only pytest -q",
        "f": "/focus claude",
    }


def test_a_menu_in_which_nothing_says_yes_or_no_offers_its_choices() -> None:
    play = LiveRoom("claude")
    choices = (Choice(number=1, label="Claude account"), Choice(number=2, label="Console account"))
    asks(play, Dialog(question="Select login method:", choices=choices), AgentState.NEEDS_HUMAN, "login")

    assert lines(only(play)) == {"1": "/approve claude 1", "2": "/approve claude 2", "f": "/focus claude"}


def test_a_menu_of_an_unknown_cli_is_no_question_of_yes_or_no() -> None:
    play = LiveRoom("claude")
    choices = (Choice(number=1, label="Subscription"), Choice(number=2, label="API key"))
    asks(play, Dialog(question="Log in with:", arguments="Tool 1.0", choices=choices), kind="overlay")
    item = only(play)

    assert lines(item) == {"1": "/approve claude 1", "2": "/approve claude 2", "f": "/focus claude"}
    assert item.detail == "Log in with:\nTool 1.0"


def test_a_command_that_is_too_long_for_a_rule_is_not_offered_as_one() -> None:
    play = LiveRoom("claude")
    asks(play, replace(BASH, runs=f"pytest {'x' * MAX_PATTERN}"))

    assert "a" not in lines(only(play))


@pytest.mark.parametrize("reason", [HeldReason.BUSY, HeldReason.DIALOG, HeldReason.COVERED])
def test_a_message_that_waits_by_itself_needs_nobody(reason: HeldReason) -> None:
    play = LiveRoom("claude")
    said = play.say(HUMAN, CLAUDE)
    play.report(CLAUDE, said.id, DeliveryState.HELD, reason)

    assert items_of(play) == ()


def test_parts_of_one_dialog_are_asked_once() -> None:
    play = LiveRoom("claude")
    asks(play)
    first = only(play)
    play.now += 1
    asks(play, Dialog(question="Do you want to proceed?", arguments="pytest -q\nRun", choices=CHOICES))
    second = only(play)

    assert (second.id, second.since) == (first.id, first.since)


def test_another_command_is_asked_at_its_own_time() -> None:
    play = LiveRoom("claude")
    asks(play)
    play.now += 1
    asks(play, Dialog(tool="Bash", arguments='{"command":"rm -rf build"}'))

    assert only(play).since == play.now


def test_an_answered_dialog_is_gone_until_its_key_is_known_to_have_failed() -> None:
    play = an_approval()
    pressed = one(play.do(ControlAgent(agent=CLAUDE, verb=ControlVerb.APPROVE)), ControlSent)
    assert items_of(play) == ()

    play.report(CLAUDE, pressed.id, DeliveryState.FAILED, "the dialog stayed open")
    assert only(play).kind is K.APPROVAL


def test_a_confirmed_answer_does_not_come_back() -> None:
    play = an_approval()
    pressed = one(play.do(ControlAgent(agent=CLAUDE, verb=ControlVerb.APPROVE)), ControlSent)
    play.report(CLAUDE, pressed.id, DeliveryState.CONFIRMED)
    assert items_of(play) == ()

    # It begins with the command that was approved, and yet it is another one.
    next_one = Dialog(tool="Bash", arguments='{"command":"pytest -q && rm -rf build"}')
    asks(play, next_one, kind="permission")
    assert only(play).detail == "pytest -q && rm -rf build"


def test_a_restart_is_no_answer_to_a_dialog() -> None:
    play = an_approval()
    play.do(ControlAgent(agent=CLAUDE, verb=ControlVerb.RESTART))

    assert only(play).kind is K.APPROVAL


@pytest.mark.parametrize("state", [AgentState.IDLE, AgentState.BUSY])
def test_an_agent_that_goes_on_needs_nobody(state: AgentState) -> None:
    play = an_approval()
    play.do(SetState(agent=CLAUDE, state=state))

    assert items_of(play) == ()


def test_a_paused_agent_that_is_lost_can_be_resumed() -> None:
    play = _screen("")()
    play.do(ControlAgent(agent=CLAUDE, verb=ControlVerb.PAUSE))

    assert lines(only(play))["y"] == "/resume claude"


# --- agents ----------------------------------------------------------------------------------------


def test_a_limit_is_over_at_its_time() -> None:
    play = a_limit()
    play.now = 2000.0

    assert items_of(play) == ()


def test_only_a_sidecar_can_be_started_again() -> None:
    play = LiveRoom("claude")
    play.do(Leave(agent=CLAUDE, reason="closed"))
    assert list(lines(only(play)).values()) == ["/remove claude"]

    assert "/restart claude" in lines(only(an_end())).values()


def test_a_removed_agent_is_no_item() -> None:
    play = an_end()
    play.do(Remove(agent=CLAUDE))

    assert items_of(play) == ()


@pytest.mark.parametrize("kind", [ParticipantKind.MCP, ParticipantKind.WEB, ParticipantKind.HUMAN])
def test_others_come_and_go_as_they_like(kind: ParticipantKind) -> None:
    play = LiveRoom()
    play.do(Join(name="claude", kind=kind))
    play.do(Leave(agent=CLAUDE, reason="closed"))

    assert items_of(play) == ()


def test_a_question_is_answered_by_a_message() -> None:
    play = a_question()
    assert only(play).detail.endswith("Shall I push it?")
    play.say(HUMAN, ALL, "yes")

    assert items_of(play) == ()


def test_what_an_agent_says_next_replaces_its_question() -> None:
    play = a_question()
    play.say(CLAUDE, HUMAN, "Never mind.")

    assert items_of(play) == ()


def test_a_question_in_a_turn_is_for_the_session() -> None:
    play = Play()
    play.start("debate", rounds=2)
    play.reply(play.waiting[0], "Why tabs?")

    assert items_of(play) == ()


def test_a_redacted_question_is_gone() -> None:
    play = a_question()
    play.do(RedactMessage(message=play.journal[-1].id))

    assert items_of(play) == ()


# --- messages --------------------------------------------------------------------------------------


def test_a_released_message_is_gone() -> None:
    play = a_held_message()
    item = only(play)
    message = item.id.rpartition(":")[2]
    assert item.detail.startswith("reply ")
    play.do(ReleaseMessage(message=message))

    assert items_of(play) == ()


def test_a_cancelled_message_is_gone() -> None:
    play = a_held_message()
    play.do(CancelMessage(message=only(play).id.rpartition(":")[2]))

    assert items_of(play) == ()


def test_numbers_in_lines_are_those_of_the_messages() -> None:
    play = a_held_message()
    message = play.room.message(only(play).id.rpartition(":")[2])
    assert message is not None

    assert lines(only(play)) == {"y": f"/continue {message.seq}", "n": f"/cancel {message.seq}"}


# --- sessions --------------------------------------------------------------------------------------


def test_a_tie_is_decided_by_a_label() -> None:
    play = a_tie()
    item = only(play)
    assert item.level is AttentionLevel.ACTION
    labels = [answer.line.split()[-1] for answer in item.answers]
    play.steer(SessionAction.DECIDE, choice=labels[0].lower())

    assert items_of(play) == ()
    assert play.session.chosen in (CLAUDE, CODEX)
    assert play.notices[-1] == f"The tie is decided: {labels[0]} ({play.session.chosen})."


def test_a_tie_may_be_left_open() -> None:
    play = a_tie()
    play.steer(SessionAction.DECIDE, choice="none")

    assert items_of(play) == ()
    assert play.session.chosen is None


def test_a_tie_is_over_with_the_next_session_of_its_thread() -> None:
    play = a_tie()
    play.start("debate", rounds=1)

    assert items_of(play) == ()


@pytest.mark.parametrize("choice", ["Q", "", None])
def test_only_a_leader_can_win_a_tie(choice: str | None) -> None:
    play = a_tie()
    steer = Steer(sender=HUMAN, session=play.session.id, action=SessionAction.DECIDE, choice=choice)

    assert "unknown choice" in play.refused(steer)


def test_a_session_without_an_open_matter_takes_no_decision() -> None:
    play = Play()
    play.start("debate", rounds=1)
    steer = Steer(sender=HUMAN, session=play.session.id, action=SessionAction.DECIDE, choice="ok")

    assert "is not waiting for a decision" in play.refused(steer)


@pytest.mark.parametrize("way", [a_limit_near, a_limit_reached])
def test_a_limit_is_noted(way: Callable[[], Play]) -> None:
    play = way()
    assert only(play).level is AttentionLevel.INFO
    play.steer(SessionAction.DECIDE, choice="ok")

    assert items_of(play) == ()


def test_a_session_near_its_limit_can_be_ended() -> None:
    play = a_limit_near()
    play.steer(SessionAction.DECIDE, choice="end")

    assert play.ended is EndReason.CANCELED
    assert items_of(play) == ()


def test_a_limit_that_was_noted_is_told_again_when_it_is_reached() -> None:
    play = a_limit_near()
    play.steer(SessionAction.DECIDE, choice="ok")
    play.reply(play.waiting[0], usage=Usage(input=800, output=50))

    assert only(play).title.endswith("was stopped by its limit")


# --- review runs -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("way", "action", "fields"),
    [
        (a_plan, RunAction.GO, {}),
        (a_plan, RunAction.DECIDE, {"decision": Decision.REVISE}),
        (a_plan, RunAction.ABORT, {"rationale": "no"}),
        (an_escalation, RunAction.DECIDE, {"decision": Decision.ACCEPT}),
        (an_escalation, RunAction.DECIDE, {"decision": Decision.REVISE}),
        (a_halt, RunAction.RESUME, {}),
    ],
)
def test_a_decided_run_is_gone(
    way: Callable[[], Reviewing], action: RunAction, fields: dict[str, object]
) -> None:
    play = way()
    play.act(action, **fields)

    assert items_of(play) == ()


def test_a_plan_is_shown_with_its_steps() -> None:
    item = only(a_plan())

    assert item.detail.endswith("1. write it\n2. test it")
    assert lines(item)["y"] == f"/review go {item.run}"


# --- the whole ---------------------------------------------------------------------------------------


def test_the_oldest_comes_first() -> None:
    play = LiveRoom("claude", "codex")
    play.do(SetState(agent=CODEX, state=AgentState.NEEDS_HUMAN))
    play.now += 1
    asks(play)

    assert [item.agent for item in items_of(play)] == ["codex", "claude"]


@pytest.mark.parametrize("way", WAYS)
def test_only_the_named_events_change_the_list(way: str) -> None:
    """Replay the journal: where the list changes, the event is one that clients look after."""
    from csp.room.room_reducer import apply

    play = WAYS[way][1]()
    room, before = Room(), attention(Room(), play.now)
    for event in play.journal:
        room = apply(room, event)
        after = attention(room, play.now)
        assert after == before or type_of(event) in EVENTS
        before = after
