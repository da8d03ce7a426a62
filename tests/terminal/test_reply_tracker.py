"""What follows from the items of a CLI's record."""

import pytest

from csp.protocol.enums import Ending
from csp.protocol.requests import Usage
from csp.terminal.reply_tracker import (
    REMEMBERED,
    Asked,
    Attached,
    Bypassed,
    CapturedActivity,
    CapturedReply,
    Confirmed,
    Counted,
    Ended,
    Item,
    Opened,
    Outcome,
    Prompted,
    Reopened,
    Returned,
    Started,
    Submitted,
    Switched,
    ToolCalled,
    Tracker,
    TurnState,
    Using,
    Wrote,
)

OPEN = TurnState(is_open=True)
CLOSED = TurnState(is_open=False)
SWITCHED = Switched(session="s-2", path="b.jsonl")


def ours(tag: str, text: str = "do it") -> str:
    return f"[from human #{tag}]\n{text}\n[end #{tag}]"


def prompt(name: str, tag: str = "") -> Prompted:
    return Prompted(id=name, text=ours(tag) if tag else "typed by a person")


def wrote(name: str, text: str = "") -> Wrote:
    return Wrote(id=name, text=text or name)


def called(name: str) -> ToolCalled:
    return ToolCalled(id=name, tool="Bash", arguments='{"command":"ls"}')


def feed(tracker: Tracker, *items: Item) -> list[Outcome]:
    return [outcome for item in items for outcome in tracker.feed(item)]


def told(*items: Item) -> list[Outcome]:
    return feed(Tracker(), *items)


def replies(outcomes: list[Outcome]) -> list[tuple[str, str | None, str]]:
    return [(one.text, one.tag, one.how) for one in outcomes if isinstance(one, CapturedReply)]


def test_what_was_confirmed_is_remembered() -> None:
    tracker = Tracker()
    tracker.feed(Prompted(id="p1", text=ours("7")))

    assert Tracker.load(tracker.dump()).confirmed == ("7",)


def test_a_reply_belongs_to_the_prompt_before_it() -> None:
    outcomes = told(prompt("p1", "1"), wrote("a"), Ended(), prompt("p2", "2"), wrote("b"), Ended())

    assert outcomes == [
        Confirmed(tag="1"),
        OPEN,
        CapturedReply(id="p1", text="a", tag="1"),
        CLOSED,
        Confirmed(tag="2"),
        OPEN,
        CapturedReply(id="p2", text="b", tag="2"),
        CLOSED,
    ]


def test_a_reply_to_a_person_in_the_pane_has_no_tag() -> None:
    outcomes = told(prompt("p1"), wrote("a"), Ended())

    assert outcomes == [OPEN, CapturedReply(id="p1", text="a", tag=None), CLOSED]


def test_a_reply_is_all_text_after_the_last_tool_call() -> None:
    outcomes = told(
        *(prompt("p", "1"), wrote("a"), wrote("b"), called("c1"), wrote("d"), called("c2")),
        *(wrote("e", "x\n\ny\n"), wrote("f"), Ended()),
    )

    assert outcomes[2:] == [
        CapturedActivity(id="a", text="a", tag="1"),
        CapturedActivity(id="b", text="b", tag="1", tool="Bash", arguments='{"command":"ls"}'),
        CapturedActivity(id="d", text="d", tag="1", tool="Bash", arguments='{"command":"ls"}'),
        CapturedReply(id="p", text="x\n\ny\n\n\nf", tag="1"),
        CLOSED,
    ]


def test_a_call_without_text_is_activity_too() -> None:
    outcomes = told(prompt("p", "1"), called("c1"), Ended())

    assert outcomes[2:-1] == [
        CapturedActivity(id="c1", text="", tag="1", tool="Bash", arguments='{"command":"ls"}'),
        CapturedReply(id="p", text="", tag="1"),
    ]


def test_blank_text_is_no_block() -> None:
    assert replies(told(prompt("p", "1"), wrote("a", " \n"), wrote("b"), Ended())) == [("b", "1", "done")]


def test_what_was_seen_is_not_taken_twice() -> None:
    turn: list[Item] = [prompt("p", "1"), wrote("a"), called("c"), Returned(id="c"), wrote("b"), Ended()]
    tracker = Tracker()
    feed(tracker, *turn)

    assert feed(tracker, *turn) == []


def test_only_so_many_ids_are_remembered() -> None:
    tracker = Tracker()
    feed(tracker, prompt("p", "1"), *(wrote(f"w{number}") for number in range(REMEMBERED)), Ended())

    assert len(tracker.dump()) < 64 * REMEMBERED
    assert feed(tracker, wrote(f"w{REMEMBERED - 1}"), Ended()) == []
    assert replies(feed(tracker, prompt("p", "1"), wrote("w0"), Ended())) == [("w0", "1", "done")]


def test_a_hook_confirms_before_the_record_does() -> None:
    assert told(Submitted(text=ours("1"))) == [Confirmed(tag="1"), OPEN]


def test_a_prompt_is_confirmed_once() -> None:
    outcomes = told(Submitted(text=ours("1")), prompt("p", "1"), wrote("a"), Ended())

    assert outcomes == [Confirmed(tag="1"), OPEN, CapturedReply(id="p", text="a", tag="1"), CLOSED]


def test_the_turn_stays_open_for_a_prompt_that_waits() -> None:
    tracker = Tracker()
    feed(tracker, prompt("p1", "1"), wrote("a"), Submitted(text=ours("2")))

    assert feed(tracker, Ended()) == [CapturedReply(id="p1", text="a", tag="1")]
    assert tracker.tags == ("2",)
    assert feed(tracker, prompt("p2", "2"), wrote("b"), Ended()) == [
        CapturedReply(id="p2", text="b", tag="2"),
        CLOSED,
    ]


def test_a_persons_prompt_in_the_midst_does_not_steal_the_reply() -> None:
    outcomes = told(prompt("p1", "1"), wrote("a"), called("c"), prompt("p2"), wrote("b"), Ended())

    assert outcomes[-2:] == [CapturedReply(id="p2", text="b", tag="1"), CLOSED]


def test_of_several_prompts_taken_together_the_last_of_ours_has_the_reply() -> None:
    outcomes = told(prompt("p1", "1"), prompt("p2"), prompt("p3", "3"), wrote("a"), Ended())

    assert outcomes[-2:] == [CapturedReply(id="p3", text="a", tag="3", also=("1",)), CLOSED]


@pytest.mark.parametrize("how", [Ending.INTERRUPTED, Ending.FAILED, Ending.LIMITED])
def test_a_turn_that_broke_off_gives_the_text_so_far(how: Ending) -> None:
    outcomes = told(prompt("p", "1"), wrote("a"), Ended(how=how, text="because", until="3pm"))

    assert outcomes[2] == CapturedReply(id="p", text="a", tag="1", how=how, reason="because", until="3pm")


def test_a_prompt_that_never_stood_in_the_record_can_end() -> None:
    outcomes = told(Submitted(text=ours("1")), Ended(how=Ending.INTERRUPTED))

    assert outcomes[2:] == [CapturedReply(id="#1", text="", tag="1", how=Ending.INTERRUPTED), CLOSED]


def test_a_persons_prompt_that_never_stood_in_the_record_just_ends() -> None:
    assert told(Submitted(text="hello"), Ended(how=Ending.INTERRUPTED)) == [OPEN, CLOSED]


def test_text_that_only_a_hook_had_belongs_to_the_prompt_that_waits() -> None:
    tracker = Tracker()
    feed(tracker, prompt("p1", "1"), wrote("a"), Ended(), Submitted(text=ours("2")), wrote("b"))

    assert feed(tracker, Ended()) == [CapturedReply(id="#2", text="b", tag="2"), CLOSED]


def test_an_end_without_a_turn_is_nothing() -> None:
    assert told(Ended()) == []


def test_work_without_a_prompt_opens_the_turn_but_has_no_reply() -> None:
    assert told(Opened(), Opened(), Ended()) == [OPEN, CLOSED]


def test_a_prompt_that_is_worked_on_again_has_another_reply() -> None:
    tracker = Tracker()
    feed(tracker, prompt("p", "1"), wrote("a"), Submitted(text=ours("2")), Ended())

    assert feed(tracker, Reopened(), wrote("b"), Ended()) == [CapturedReply(id="p.2", text="b", tag="1")]
    assert tracker.tags == ("2",)


def test_text_after_the_end_belongs_to_the_last_prompt() -> None:
    tracker = Tracker()
    feed(tracker, prompt("p", "1"), wrote("a"), Ended())

    assert feed(tracker, Opened(), wrote("b"), Ended()) == [
        OPEN,
        CapturedReply(id="p.2", text="b", tag="1"),
        CLOSED,
    ]


def test_text_after_the_end_is_not_given_to_the_next_prompt() -> None:
    tracker = Tracker()
    feed(tracker, prompt("p1", "1"), Ended(), wrote("late"))

    assert feed(tracker, prompt("p2", "2"), wrote("b"), Ended()) == [
        CapturedActivity(id="late", text="late", tag="1"),
        Confirmed(tag="2"),
        OPEN,
        CapturedReply(id="p2", text="b", tag="2"),
        CLOSED,
    ]


def test_text_before_any_prompt_is_bound_to_nothing() -> None:
    assert told(wrote("a"), Ended()) == [CapturedReply(id="a", text="a", tag=None)]


def test_tokens_are_summed_once_for_each_answer() -> None:
    first, last = Usage(input=10, output=1, model="m"), Usage(input=10, output=5, model="m")
    outcomes = told(
        *(prompt("p", "1"), Counted(id="m1", usage=first), wrote("a"), Counted(id="m1", usage=last)),
        *(called("c"), Counted(id="m2", usage=Usage(input=20, output=7)), wrote("b"), Ended()),
    )

    usage = Usage(input=30, output=12, model="m", calls=2)
    assert outcomes[-2] == CapturedReply(id="p", text="b", tag="1", usage=usage)


def test_tokens_of_one_turn_are_not_counted_for_the_next() -> None:
    tracker = Tracker()
    first = Counted(id="m1", usage=Usage(input=9))
    feed(tracker, prompt("p1", "1"), first, wrote("a"), Ended(), first)
    heir = Tracker.load(tracker.dump())
    feed(heir, prompt("p2", "2"), first)

    assert feed(heir, wrote("b"), Ended())[-2] == CapturedReply(id="p2", text="b", tag="2")


def test_tokens_that_are_told_after_the_end_are_counted_for_the_next_turn() -> None:
    tracker = Tracker()
    feed(tracker, prompt("p1", "1"), wrote("a"), Ended(how=Ending.INTERRUPTED))
    feed(tracker, Counted(id="m2", usage=Usage(input=8)))
    assert tracker.usage is None

    feed(tracker, prompt("p2", "2"))
    assert tracker.usage == Usage(input=8, calls=1)


def test_what_a_turn_has_used_is_known_while_it_runs() -> None:
    tracker = Tracker()
    feed(tracker, prompt("p1", "1"))
    assert tracker.usage is None
    feed(tracker, Counted(id="m1", usage=Usage(input=9, cache_read=5, model="m")))
    feed(tracker, Counted(id="m2", usage=Usage(input=1, output=2)))

    assert tracker.usage == Usage(input=10, output=2, cache_read=5, model="m", calls=2)
    feed(tracker, Ended())
    assert tracker.usage is None


def test_another_session_begins_with_nothing() -> None:
    tracker = Tracker()
    feed(tracker, prompt("p1", "1"), wrote("a"), Ended(), wrote("late"))

    assert feed(tracker, SWITCHED) == [CapturedActivity(id="late", text="late", tag="1"), SWITCHED]
    assert feed(tracker, wrote("b"), Ended()) == [CapturedReply(id="b", text="b", tag=None)]


def test_a_turn_that_runs_ends_with_its_session() -> None:
    tracker = Tracker()
    feed(tracker, prompt("p1", "1"), wrote("a"), Submitted(text=ours("2")))

    assert feed(tracker, SWITCHED) == [
        CapturedReply(id="p1", text="a", tag="1", how=Ending.INTERRUPTED),
        CLOSED,
        SWITCHED,
    ]
    assert tracker.tags == ()


def test_a_persons_turn_ends_with_its_session_too() -> None:
    tracker = Tracker()
    feed(tracker, prompt("p1"))

    assert feed(tracker, SWITCHED) == [CLOSED, SWITCHED]
    assert not tracker.is_open


def test_an_item_of_no_kind_is_a_fault_of_ours() -> None:
    with pytest.raises(AssertionError):
        Tracker().feed("nonsense")  # type: ignore[arg-type]  # what the types forbid


def test_what_only_passes_through() -> None:
    asked = Asked(tool="Bash", arguments="{}")
    refused = Returned(id="c", is_refused=True)

    assert told(Started(), asked, refused, refused) == [Started(), asked, refused]


def test_tags_are_those_of_the_prompts_at_work() -> None:
    tracker = Tracker()
    feed(tracker, prompt("p1", "1"), prompt("p2"), Submitted(text=ours("3")), Submitted(text="local"))

    assert tracker.tags == ("1", "3")


TURNS: list[Item] = [
    *(
        Submitted(text=ours("1")),
        prompt("p1", "1"),
        Counted(id="m", usage=Usage(input=3, output=4, model="m")),
    ),
    *(
        wrote("a"),
        called("c"),
        Asked(tool="Bash", arguments="{}"),
        Returned(id="c"),
        wrote("b"),
        prompt("p2"),
    ),
    *(wrote("d"), Submitted(text=ours("3")), Ended(), prompt("p3", "3"), Ended(how=Ending.FAILED, text="no")),
    *(Reopened(), wrote("e"), Ended(), Opened(), SWITCHED, prompt("p4", "t-4"), wrote("f"), Ended()),
]


@pytest.mark.parametrize("at", range(len(TURNS) + 1))
def test_a_tracker_that_takes_over_goes_on_as_the_old_one_would(at: int) -> None:
    old = Tracker()
    before = feed(old, *TURNS[:at])
    new = Tracker.load(old.dump())

    assert new.is_open == old.is_open
    assert new.tags == old.tags
    assert before + feed(new, *TURNS[at:]) == told(*TURNS)


@pytest.mark.parametrize("at", range(len(TURNS) + 1))
def test_what_is_fed_again_after_a_crash_gives_nothing_new(at: int) -> None:
    tracker = Tracker()
    first = feed(tracker, *TURNS[:at])
    again = feed(
        Tracker.load(tracker.dump()), *(one for one in TURNS[:at] if isinstance(one, Prompted | Wrote))
    )
    known = [one for one in first if isinstance(one, CapturedActivity | CapturedReply | Confirmed)]

    assert [
        one
        for one in again
        if isinstance(one, CapturedActivity | CapturedReply | Confirmed) and one not in known
    ] == []


@pytest.mark.parametrize("dumped", [b"", b"{", b'{"seen": 7}', b"\xff"])
def test_a_dump_that_cannot_be_read_is_as_none(dumped: bytes) -> None:
    assert feed(Tracker.load(dumped), prompt("p", "1")) == [Confirmed(tag="1"), OPEN]


def test_a_tool_runs_from_its_call_until_it_returns() -> None:
    tracker = Tracker()
    feed(tracker, prompt("p"), called("one"), called("two"), Returned(id="one"))
    assert tracker.runs_tool
    assert Tracker.load(tracker.dump()).runs_tool
    feed(tracker, Returned(id="two"))
    assert not tracker.runs_tool


def test_the_command_of_a_call_is_known_while_it_is_the_only_one() -> None:
    tracker = Tracker()
    first, second = (ToolCalled(id=name, tool="sh", arguments="{}", command=name) for name in ("ls", "rm"))
    assert tracker.open_command == ""
    feed(tracker, prompt("p"), first)
    assert (tracker.open_command, Tracker.load(tracker.dump()).open_command) == ("ls", "ls")
    feed(tracker, second)
    assert tracker.open_command == ""
    feed(tracker, Returned(id="ls"))
    assert tracker.open_command == "rm"
    feed(tracker, Returned(id="rm"), called("one"))
    assert tracker.open_command == ""


def test_a_turn_states_the_context_of_its_last_call_and_of_no_subagent() -> None:
    tracker = Tracker()
    counts = [(5, 10), (7, 20), (0, 0)]
    items = [
        Counted(id=str(number), usage=Usage(input=1, context=context, window=window))
        for number, (context, window) in enumerate(counts)
    ]
    feed(tracker, prompt("p", "1"), *items)

    assert tracker.usage == Usage(input=3, calls=3, context=7, window=20)


def test_a_tool_that_only_a_hook_tells_of_runs_too() -> None:
    tracker = Tracker()
    assert feed(tracker, prompt("p"), Using(id="shell@1")) == [OPEN]
    assert tracker.runs_tool
    feed(tracker, Returned(id="shell@1"))
    assert not tracker.runs_tool


def test_a_call_that_is_written_down_after_its_return_runs_no_more() -> None:
    tracker = Tracker()
    feed(tracker, prompt("p"), Returned(id="one"), called("one"))

    assert not tracker.runs_tool


@pytest.mark.parametrize("item", [Ended(how=Ending.INTERRUPTED), SWITCHED])
def test_no_tool_outlives_its_turn(item: Item) -> None:
    tracker = Tracker()
    feed(tracker, prompt("p", "1"), called("one"), item)

    assert not tracker.runs_tool


JOINED = f"typed by a person\n\n{ours('7')}\n\nand more"


def test_a_prompt_of_ours_that_was_joined_with_a_persons_is_confirmed_and_answered() -> None:
    outcomes = told(Submitted(text=JOINED), Prompted(id="p", text=JOINED), wrote("a", "An answer."), Ended())

    assert outcomes[:2] == [Confirmed(tag="7"), OPEN]
    assert replies(outcomes) == [("An answer.", "7", "done")]


def test_two_prompts_of_ours_that_were_joined_have_one_answer() -> None:
    text = f"{ours('1')}\n{ours('2')}"
    outcomes = told(Submitted(text=text), Prompted(id="p", text=text), wrote("a", "Both."), Ended())

    assert [one.tag for one in outcomes if isinstance(one, Confirmed)] == ["1", "2"]
    (reply,) = [one for one in outcomes if isinstance(one, CapturedReply)]
    assert (reply.tag, reply.also) == ("2", ("1",))


def test_an_old_prompt_of_ours_that_a_person_quotes_is_answered_to_nobody() -> None:
    quoting = f"look at this:\n{ours('7')}"
    tracker = Tracker()
    feed(tracker, Submitted(text=ours("7")), prompt("p", "7"), wrote("a"), Ended())
    later = feed(tracker, Submitted(text=quoting), Prompted(id="q", text=quoting), wrote("b"), Ended())

    assert replies(later) == [("b", None, "done")]


def test_a_file_in_a_prompt_of_ours_is_told_once() -> None:
    attached = Attached(id="f", path="/etc/passwd")

    assert told(prompt("p", "1"), attached, attached).count(attached) == 1


def test_a_file_in_a_prompt_that_was_joined_with_ours_is_told() -> None:
    attached = Attached(id="f", path="/etc/passwd")

    assert attached in told(Prompted(id="p", text=JOINED), attached)


@pytest.mark.parametrize("before", [[], [prompt("p")], [prompt("o", "1"), prompt("p")]])
def test_a_file_that_a_person_asked_for_is_theirs(before: list[Item]) -> None:
    attached = Attached(id="f", path="notes.md")

    assert attached not in told(*before, attached)


def test_a_message_past_the_room_is_told_once() -> None:
    past = Bypassed(id="c past", to="claude-2")

    assert told(prompt("p"), past, past).count(past) == 1
