"""What stands in the prompt of a turn."""

import pytest

from csp.protocol.enums import ALL, HUMAN, ROUTER, AgentId, MessageId, Mode, ParticipantKind, SessionId
from csp.protocol.requests import Handoff
from csp.protocol.responses import Deliver
from csp.protocol.session_parts import Limits, Setup
from csp.room.commands import DEFAULT_WINDOW as SIZE
from csp.room.commands import RoomRules, WindowSize
from csp.room.messages import pending
from csp.room.sessions.session_state import Session, WindowItem
from csp.room.sessions.turn_prompt import agrees, newest, render, round_label, visible_items, window
from tests.room.live import CLAUDE, CODEX, GEMINI
from tests.room.playing import PROMPTS, Play


def item(number: int, text: str = "x", sender: AgentId = CLAUDE, target: AgentId = ALL) -> WindowItem:
    return WindowItem(MessageId(f"m-{number}"), sender, target, text)


def session_with(*items: WindowItem, mode: Mode = Mode.COLLABORATE, rounds: int | None = 6) -> Session:
    setup = Setup(mode=mode, agents=(CLAUDE, CODEX), rounds=rounds)
    return Session(SessionId("s-1"), 1, "default", setup, 0.0, (CLAUDE, CODEX), items=items)


def ids(session: Session, agent: AgentId = CODEX) -> list[str]:
    return [one.id for one in window(session, agent)]


# --- the window ----------------------------------------------------------------------------------


def test_window_has_the_last_eight_oldest_first() -> None:
    assert ids(session_with(*[item(number) for number in range(12)])) == [f"m-{n}" for n in range(4, 12)]


def test_long_items_push_the_oldest_out() -> None:
    share = "x" * (SIZE.tokens * 4 // 3)

    assert ids(session_with(*[item(number, share) for number in range(5)])) == ["m-3", "m-4"]


def test_window_fills_its_budget_to_the_last_token() -> None:
    half = "x" * (SIZE.tokens * 4 // 2)

    assert ids(session_with(*[item(number, half) for number in range(5)])) == ["m-3", "m-4"]


def test_window_is_as_large_as_the_rules_say() -> None:
    play = Play(rules=RoomRules(prompts=PROMPTS, window=WindowSize(items=2, tokens=40)))
    play.start("round_robin")
    for agent, text in ((CLAUDE, "first"), (CODEX, "second"), (GEMINI, "third " + "x" * 400)):
        play.reply(agent, text)

    assert window_in(play.prompt(CLAUDE)) == f"gemini: third {'x' * 148} [cut]"
    play.reply(CLAUDE, "fourth")
    play.reply(CODEX, "fifth")
    assert window_in(play.prompt(GEMINI)) == "claude: fourth\n\ncodex: fifth"


def window_in(prompt: str) -> str:
    return prompt.partition("window=")[2].partition(" positions=")[0]


def test_newest_item_stays_however_long_it_is() -> None:
    assert ids(session_with(item(1), item(2, "x" * 100_000))) == ["m-2"]


def test_task_that_was_not_read_is_never_dropped() -> None:
    task = item(0, "look", ROUTER, CODEX)

    assert ids(session_with(task, *[item(number) for number in range(1, 12)])) == [
        "m-0",
        *[f"m-{number}" for number in range(5, 12)],
    ]


def test_task_that_was_read_may_go() -> None:
    task, answer = item(0, "look", ROUTER, CODEX), item(1, "done", CODEX)

    assert "m-0" not in ids(session_with(task, answer, *[item(number) for number in range(2, 12)]))


def test_window_shows_nothing_between_others() -> None:
    private = item(1, "psst", CLAUDE, GEMINI)

    assert ids(session_with(private)) == []
    assert ids(session_with(private), CLAUDE) == ["m-1"]
    assert ids(session_with(private), GEMINI) == ["m-1"]


def test_window_stays_small_over_two_hundred_turns() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("autopilot", limits=Limits(tokens=10**9))
    sizes = []
    for number in range(150):
        sizes.append(len(play.prompt(play.waiting[0])))
        play.reply(play.waiting[0], f"{number:03} " + "word " * 30, handoff=Handoff(to="codex", task="go"))
        if play.session.is_over:
            break

    assert max(sizes[20:]) <= max(sizes[10:20]) + 10
    assert len(play.session.items) <= 24


def test_human_speaks_into_the_window() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("autopilot")
    play.say(HUMAN, CLAUDE, "mind the gap")
    play.say(HUMAN, ALL, "all of you")
    play.reply(CLAUDE)

    assert "human: all of you" in play.prompt(CODEX)
    assert "mind the gap" not in play.prompt(CODEX)


def test_ballot_has_no_names_in_its_window() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("consensus")
    play.reply_all("plan of {0}")
    play.say(HUMAN, ALL, "choose well")
    play.reply(CLAUDE, "no vote in here")

    assert "claude:" not in play.prompt(CLAUDE)
    assert "said:" not in play.prompt(CLAUDE)
    assert "human: choose well" in play.prompt(CLAUDE)


# --- labels, templates ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "rounds", "label"),
    [
        (Mode.COLLABORATE, 6, "Round 3 of 6"),
        (Mode.AUTOPILOT, None, "Round: 3 (Autopilot)"),
        (Mode.ORCHESTRATOR, None, "Round 3"),
    ],
)
def test_round_is_labelled_as_its_mode_counts(mode: Mode, rounds: int | None, label: str) -> None:
    assert round_label(session_with(mode=mode, rounds=rounds), 3) == label


def test_what_is_filled_in_is_no_template() -> None:
    assert render({"x": "{a} {b} {unknown}"}, "x", {"a": "{b}", "b": "1"}) == "{b} 1 {unknown}"


def test_without_a_template_all_is_shown_that_is_known() -> None:
    names = ("label", "goal", "window", "positions", "proposals", "format")
    values = dict.fromkeys(names, "?") | {"goal": "tabs"}

    assert render({}, "x", values) == "?\ntabs\n?\n?\n?\n?"


def test_gaps_close() -> None:
    assert render({"x": "a\n\n{b}\n\nc\n"}, "x", {"b": ""}) == "a\n\nc"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("AGREE", True),
        ("well\nAGREE.\nbye", True),
        ("I AGREE", False),
        ("AGREE with that", False),
        ("```\nAGREE\n```", False),
        ("disagree", False),
    ],
)
def test_agreement_is_a_line_of_its_own(text: str, expected: bool) -> None:
    assert agrees(text) is expected


# --- what the others said ------------------------------------------------------------------------


def test_positions_share_the_room_there_is() -> None:
    play = Play(CLAUDE, CODEX, GEMINI)
    play.start("debate", rounds=2)
    play.reply_all("{0} " + "x" * 30_000)

    assert len(play.prompt(CLAUDE)) < 33_000 + 11_000
    assert play.prompt(CLAUDE).count("[cut]") >= 2


def test_synthesis_is_asked_with_the_proposals_and_the_votes() -> None:
    play = Play(CLAUDE, CODEX, GEMINI)
    play.start("consensus", synth="gemini")
    play.reply_all("plan of {0}")
    labels = {one.agent: one.label for one in play.session.stage.candidates}
    for voter in (CLAUDE, GEMINI, CODEX):
        play.reply(voter, f"VOTE: [{labels[CODEX]}]")

    assert "claude said:\nplan of claude" in play.prompt(GEMINI)
    assert "VOTE" not in play.prompt(GEMINI).partition("positions=")[2].partition("proposals=")[0]


# --- how to answer -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "kind", "shape"),
    [
        ("collaborate", ParticipantKind.CLI, "LINES"),
        ("autopilot", ParticipantKind.CLI, "LINES"),
        ("round_robin", ParticipantKind.CLI, "END"),
        ("debate", ParticipantKind.CLI, "WORDS"),
        ("consensus", ParticipantKind.CLI, "WORDS"),
        ("collaborate", ParticipantKind.API, "JSON"),
        ("debate", ParticipantKind.API, "JSON only"),
    ],
)
def test_only_what_the_mode_heeds_is_offered(mode: str, kind: ParticipantKind, shape: str) -> None:
    play = Play(CLAUDE, CODEX, kind=kind)
    play.start(mode)

    assert play.prompt(CLAUDE).endswith(f"format={shape}")


def test_only_the_lead_is_told_how_to_hand_over() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("orchestrator")
    play.reply(CLAUDE, handoff=Handoff(to="codex", task="go"))

    assert play.prompt(CLAUDE).endswith("format=LINES")
    assert play.prompt(CODEX).endswith("format=WORDS")


# --- what a turn allows --------------------------------------------------------------------------


def ask_of(play: Play, agent: AgentId) -> Deliver:
    """Return what an agent has to act on."""
    (deliver,) = pending(play.room, agent)
    return deliver


def test_turn_tells_whom_its_reply_may_name() -> None:
    play = Play(CLAUDE, CODEX, kind=ParticipantKind.API)
    play.start("collaborate")

    assert ask_of(play, CLAUDE).handoff_to == (CLAUDE, CODEX)


@pytest.mark.parametrize("mode", ["debate", "consensus", "round_robin"])
def test_turn_in_which_nobody_can_be_named_says_so(mode: str) -> None:
    play = Play(CLAUDE, CODEX, kind=ParticipantKind.API)
    play.start(mode)

    assert ask_of(play, CLAUDE).handoff_to == ()


def test_only_the_lead_may_name_somebody() -> None:
    play = Play(CLAUDE, CODEX, kind=ParticipantKind.API)
    play.start("orchestrator")
    play.reply(CLAUDE, '{"message": "go", "handoff": {"to": "codex", "task": "t"}}')

    assert ask_of(play, CODEX).handoff_to == ()


def test_turn_tells_that_it_asks_once_more() -> None:
    play = Play(CLAUDE, CODEX, kind=ParticipantKind.API)
    play.start("collaborate")
    assert not ask_of(play, CLAUDE).is_repair
    play.reply(CLAUDE, "plain words")

    assert ask_of(play, CLAUDE).is_repair


def test_ask_of_a_session_that_is_forgotten_allows_nothing() -> None:
    play = Play(CLAUDE, CODEX, kind=ParticipantKind.API)
    play.start("collaborate")
    play.room.sessions.by_id.clear()

    assert (ask_of(play, CLAUDE).handoff_to, ask_of(play, CLAUDE).is_repair) == ((), False)


def test_newest_items_are_a_window_of_any_conversation() -> None:
    items = [item(number) for number in range(12)]

    assert newest(items, SIZE) == items[4:]
    assert visible_items(newest([], SIZE)) == "(nothing yet)"
