"""The tests of what is done to a board."""

import pytest

from csp.errors import BadInput, NotFound, Refused
from csp.protocol.enums import ALL, HUMAN, SYSTEM, DeliveryState, Ending, MessageId
from csp.protocol.events import BoardChanged, KnownEvent, NoteAdded, NoticePosted, SystemReply
from csp.protocol.notes import BoardChange, NoteKind, Provider, Source
from csp.room.board_state import ASK_S, note_of
from csp.room.commands import (
    CancelMessage,
    PostReply,
    Remove,
    ReportDelivery,
    RoomRules,
    SetBoardProvider,
    Summarise,
    WriteNote,
)
from tests.room.live import CLAUDE, CODEX, LiveRoom
from tests.room.playing import Play

N = MessageId


@pytest.fixture
def live() -> Play:
    return Play(CLAUDE, CODEX)


def board(live: Play, count: int) -> tuple[MessageId, ...]:
    """Write notes; return their ids."""
    return tuple(live.do(WriteNote(sender=CODEX, text=f"note {n}"))[0].id for n in range(count))


def ask(live: Play, notes: tuple[MessageId, ...], session: str = "room") -> SystemReply:
    events = live.do(Summarise(by="claude", session=session, text="sum it up", stands_for=notes))
    told = events[0]
    assert isinstance(told, SystemReply)
    return told


# --- notes ---------------------------------------------------------------------------------------


def test_note_is_for_all_under_its_own_number(live: Play) -> None:
    (event,) = live.do(WriteNote(sender=CLAUDE, text="look", tags=("a", "b", "a")))

    assert isinstance(event, NoteAdded)
    assert (event.id, event.sender, event.target, event.thread) == (f"n-{event.seq}", CLAUDE, ALL, "default")
    assert (event.idx, event.tags, event.session_id, event.kind) == (0, ("a", "b"), None, NoteKind.NOTE)


def test_note_of_a_session_is_in_its_thread() -> None:
    play = Play()
    play.start("round_robin", steps=2, thread="dev")
    (session,) = play.room.sessions.by_id
    (event,) = play.do(WriteNote(sender=HUMAN, text="look", session=session))

    assert isinstance(event, NoteAdded)
    assert (event.session_id, event.thread) == (session, "dev")


def test_board_outlives_its_session(live: Play) -> None:
    play = Play()
    play.start("round_robin", steps=2)
    session = play.session.id
    play.do(WriteNote(sender=HUMAN, text="before", session=session))
    del play.room.sessions.by_id[session]
    (event,) = play.do(WriteNote(sender=HUMAN, text="after", session=session))

    assert isinstance(event, NoteAdded)
    assert (event.idx, event.thread) == (1, "default")


def test_secrets_do_not_come_onto_the_board() -> None:
    live = LiveRoom("claude", rules=RoomRules(secrets=("open-sesame",)))
    (event,) = live.do(WriteNote(sender=CLAUDE, text="say open-sesame, or ghp_" + "a1B2" * 9))

    assert event.text == "say [redacted room token], or [redacted github token]"


def test_secrets_do_not_come_into_the_tags() -> None:
    live = LiveRoom("claude", rules=RoomRules(secrets=("open-sesame",)))
    tags = ("parser", "key:open-sesame", "ghp_" + "a1B2" * 9)

    (event,) = live.do(WriteNote(sender=CLAUDE, text="look", tags=tags))

    assert isinstance(event, NoteAdded) and event.tags == ("parser", "redacted")


def test_blank_note_is_refused(live: Play) -> None:
    assert live.refuse(WriteNote(sender=CLAUDE, text=" \n "), BadInput).message == "the note is blank"


def test_note_for_an_unknown_session_is_refused(live: Play) -> None:
    error = live.refuse(WriteNote(sender=CLAUDE, text="x", session="s-99"), NotFound)

    assert error.message == "unknown session 's-99'"


def test_same_id_writes_nothing_again(live: Play) -> None:
    note = WriteNote(sender=CLAUDE, text="x", id="own-1")

    assert len(live.do(note)) == 1
    assert live.do(note) == []


def test_id_of_somebody_else_is_refused(live: Play) -> None:
    live.do(WriteNote(sender=CLAUDE, text="x", id="own-1"))

    assert "already used" in live.refuse(WriteNote(sender=CODEX, text="x", id="own-1"), Refused).message
    assert "own ids" in live.refuse(WriteNote(sender=CODEX, text="x", id="n-1"), BadInput).message


# --- summaries -----------------------------------------------------------------------------------


def test_summary_is_asked_for_in_a_message(live: Play) -> None:
    notes = board(live, 2)
    told = ask(live, notes)
    (changed,) = live.all(BoardChanged)

    assert (told.sender, told.target, told.recipients, told.text) == (SYSTEM, CLAUDE, (CLAUDE,), "sum it up")
    assert (changed.change, changed.message, changed.by) == (BoardChange.ASKED, told.id, CLAUDE)
    assert changed.stands_for == notes


def test_answer_becomes_a_summary_that_says_what_it_stands_for(live: Play) -> None:
    notes = board(live, 2)
    told = ask(live, notes)
    board(live, 1)
    events = live.do(PostReply(sender=CLAUDE, text="all is well", reply_to=told.id))
    reply, summary = _reply_with_note(events)
    now = live.room.boards.of(None)

    assert (summary.text, summary.kind, summary.stands_for) == ("all is well", NoteKind.SUMMARY, notes)
    assert summary.source == Source(seq=reply.seq, type="agent_response", id=reply.id)
    assert (summary.idx, now.next_idx, now.fresh, now.ask) == (3, 4, 1, None)
    assert live.room.boards.asks == {}


def test_index_goes_on_after_a_summary(live: Play) -> None:
    told = ask(live, board(live, 2))
    live.do(PostReply(sender=CLAUDE, text="all is well", reply_to=told.id))
    board(live, 2)
    told = ask(live, board(live, 1))
    live.do(PostReply(sender=CLAUDE, text="still is", reply_to=told.id))
    found = [one.idx for one in map(note_of, live.journal) if one]

    assert found == list(range(7))


def test_summary_in_an_envelope_is_its_message(live: Play) -> None:
    told = ask(live, board(live, 1))
    events = live.do(PostReply(sender=CLAUDE, text='{"message": "all is well"}', reply_to=told.id))

    assert _reply_with_note(events)[1].text == "all is well"


@pytest.mark.parametrize(
    ("text", "ending", "why"),
    [
        (" \n ", Ending.DONE, "blank"),
        ("half of", Ending.INTERRUPTED, "interrupted"),
        ("", Ending.FAILED, "blank"),
    ],
)
def test_failed_summary_changes_nothing(live: Play, text: str, ending: Ending, why: str) -> None:
    told = ask(live, board(live, 2))
    before = live.room.boards.of(None)
    live.do(PostReply(sender=CLAUDE, text=text, ending=ending, reply_to=told.id))
    now = live.room.boards.of(None)

    assert not [one for one in live.all(NoteAdded) if one.kind is NoteKind.SUMMARY]
    assert (now.next_idx, now.fresh, now.ask, now.failed_at) == (before.next_idx, before.fresh, None, 2)
    assert live.all(NoticePosted)[-1].text == (
        f"claude's summary of room failed: it was {why}. The whiteboard is unchanged."
    )


def test_second_summary_is_refused_while_one_is_written(live: Play) -> None:
    notes = board(live, 2)
    told = ask(live, notes)
    again = Summarise(by="codex", session="room", text="x", stands_for=notes)
    error = live.refuse(again, Refused)

    assert error.message == "claude is writing a summary of room"
    assert told.id in error.hint
    live.now += ASK_S
    assert [type(event) for event in live.do(again)] == [SystemReply, BoardChanged]


def test_answer_to_an_ask_that_was_replaced_is_only_words(live: Play) -> None:
    notes = board(live, 2)
    old = ask(live, notes)
    live.now += ASK_S
    ask(live, notes)
    live.do(PostReply(sender=CLAUDE, text="all is well", reply_to=old.id))

    assert not [one for one in live.all(NoteAdded) if one.kind is NoteKind.SUMMARY]


def test_answer_of_somebody_else_is_no_summary(live: Play) -> None:
    told = ask(live, board(live, 2))
    live.do(PostReply(sender=CODEX, text="let me", reply_to=told.id))

    assert not [one for one in live.all(NoteAdded) if one.kind is NoteKind.SUMMARY]
    assert live.room.boards.of(None).ask is not None


def test_ask_that_fails_on_its_way_ends_the_summary(live: Play) -> None:
    told = ask(live, board(live, 2))
    live.do(ReportDelivery(agent=CLAUDE, message=told.id, state=DeliveryState.FAILED, reason="stuck"))

    assert live.room.boards.of(None).ask is None
    assert live.all(BoardChanged)[-1].change is BoardChange.FAILED


def test_ask_that_is_withdrawn_ends_the_summary(live: Play) -> None:
    told = ask(live, board(live, 2))
    live.do(CancelMessage(message=told.id))

    assert live.room.boards.of(None).ask is None


def test_who_is_removed_writes_no_summary(live: Play) -> None:
    told = ask(live, board(live, 2))
    live.do(ReportDelivery(agent=CLAUDE, message=told.id, state=DeliveryState.SUBMITTED))
    live.do(Remove(agent=CODEX))
    assert live.room.boards.of(None).ask is not None
    live.do(Remove(agent=CLAUDE))

    assert live.room.boards.of(None).ask is None
    assert [one.change for one in live.all(BoardChanged)] == [BoardChange.ASKED, BoardChange.FAILED]


def test_there_must_be_something_to_sum_up(live: Play) -> None:
    error = live.refuse(Summarise(by="claude", session="room", text="x", stands_for=()), Refused)

    assert error.message == "there is nothing new on the board of room"


def test_who_sums_up_must_be_known(live: Play) -> None:
    live.refuse(Summarise(by="nobody", session="room", text="x", stands_for=(N("n-1"),)), NotFound)


# --- providers -----------------------------------------------------------------------------------


def test_provider_is_noted_once(live: Play) -> None:
    keep = SetBoardProvider(session="room", provider=Provider.OPENAI, store="vs_1")

    assert [type(event) for event in live.do(keep)] == [BoardChanged]
    assert live.do(keep) == []


def test_change_of_provider_is_told(live: Play) -> None:
    live.do(SetBoardProvider(session="room", provider=Provider.OPENAI, store="vs_1"))
    live.do(SetBoardProvider(session="room", provider=Provider.LOCAL, problem="it is away"))

    assert (
        live.all(NoticePosted)[-1].text
        == "The whiteboard of room is searched locally from now on: it is away."
    )
    assert live.room.boards.of(None).provider is Provider.LOCAL


def _reply_with_note(events: list[KnownEvent]) -> tuple[KnownEvent, NoteAdded]:
    (summary,) = [event for event in events if isinstance(event, NoteAdded)]
    (reply,) = [event for event in events if event.id == (summary.source and summary.source.id)]
    return reply, summary
