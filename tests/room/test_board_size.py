"""The tests of how large a whiteboard may grow, and how space is made on it."""

from msgspec.structs import replace

from csp.errors import NotFound
from csp.protocol.enums import HUMAN, MessageId, SessionId
from csp.protocol.events import AgentResponse, BoardChanged, NoteAdded, NoticePosted
from csp.protocol.notes import BoardChange
from csp.protocol.responses import BoardsHealth
from csp.room.board_state import Board, Boards, boards_health, note_of
from csp.room.commands import CompactBoard, PostReply, RoomRules, Summarise, WriteNote
from tests.room.live import CLAUDE, CODEX, GEMINI
from tests.room.playing import RULES, Play


def room(limit: int) -> Play:
    return Play(CLAUDE, CODEX, rules=RoomRules(board_max_bytes=limit))


def note(play: Play, text: str) -> NoteAdded:
    (event,) = play.do(WriteNote(sender=CODEX, text=text))
    assert isinstance(event, NoteAdded)
    return event


def summed_up(play: Play, *notes: NoteAdded, text: str = "sum") -> None:
    """Have a summary written of some notes."""
    ids = tuple(MessageId(one.id) for one in notes)
    told = play.do(Summarise(by="claude", session="room", text="sum it up", stands_for=ids))[0]
    play.do(PostReply(sender=CLAUDE, text=text, reply_to=told.id))


def test_a_board_knows_its_size_in_bytes() -> None:
    play = room(0)
    note(play, "abc")
    note(play, "grün")

    assert play.room.boards.of(None).bytes == 8


def test_replies_and_summaries_count_too() -> None:
    play = room(0)
    first = note(play, "abc")
    summed_up(play, first, text="four")

    assert play.room.boards.of(None).bytes == 7
    assert play.room.boards.of(None).summed == first.seq


def test_health_adds_up_all_boards() -> None:
    boards = Boards({"room": Board(next_idx=3, bytes=10), "s-4": Board(next_idx=2, bytes=30)})

    assert boards_health(boards, 100) == BoardsHealth(
        count=2, notes=5, bytes=40, largest_bytes=30, max_bytes=100
    )
    assert boards_health(Boards(), 0) == BoardsHealth(count=0, notes=0, bytes=0, largest_bytes=0, max_bytes=0)


def test_a_note_may_fill_a_board_to_its_last_byte() -> None:
    play = room(10)
    note(play, "12345")
    note(play, "67890")
    command = WriteNote(sender=CODEX, text="x")

    assert play.refused(command) == "the whiteboard of room is full (10 bytes)"
    assert len(play.all(NoteAdded)) == 2


def test_a_limit_of_zero_is_no_limit() -> None:
    play = room(0)
    note(play, "x" * 100_000)

    assert note(play, "one more").idx == 1


def test_a_reply_without_space_is_said_but_not_put_on_the_board() -> None:
    play = Play(rules=replace(RULES, board_max_bytes=8))
    play.start("round_robin", steps=3)
    play.reply(CLAUDE, "12345")
    play.reply(CODEX, "67890")
    play.reply(GEMINI, "abcde")
    replies = [event for event in play.all(AgentResponse) if event.text in ("12345", "67890", "abcde")]
    told = [event for event in play.all(NoticePosted) if "is full" in event.text]
    changes = [event.change for event in play.all(BoardChanged)]

    assert [event.idx for event in replies] == [0, None, None]
    assert len(told) == 1 and told[0].target == HUMAN
    assert changes == [BoardChange.FULL]


def test_compaction_leaves_what_no_summary_stands_for() -> None:
    play = room(0)
    first, second = note(play, "abc"), note(play, "defg")
    summed_up(play, first)

    assert play.do(CompactBoard(session="room", upto=second.seq, freed=7)) == []
    (event,) = play.do(CompactBoard(session="room", upto=first.seq, freed=3))
    board = play.room.boards.of(None)

    assert isinstance(event, BoardChanged)
    assert (event.change, event.upto, event.freed) == (BoardChange.COMPACTED, first.seq, 3)
    assert (board.bytes, board.compacted) == (7, first.seq)


def test_a_board_is_compacted_once() -> None:
    play = room(0)
    first = note(play, "abc")
    summed_up(play, first)
    command = CompactBoard(session="room", upto=first.seq, freed=3)

    assert len(play.do(command)) == 1
    assert play.do(command) == []


def test_a_board_that_was_compacted_takes_notes_again() -> None:
    play = room(10)
    first = note(play, "1234567")
    summed_up(play, first, text="123")
    play.refused(WriteNote(sender=CODEX, text="more"))
    play.do(CompactBoard(session="room", upto=first.seq, freed=7))

    assert note(play, "more").idx == 2
    assert play.room.boards.of(None).bytes == 7


def test_a_board_that_is_full_again_says_so_again() -> None:
    boards = Boards({"s-4": Board(is_full=True, bytes=5)})
    head = (9, 1.0, MessageId("e-9"), HUMAN, HUMAN, "", "")
    boards.apply(
        BoardChanged(*head, change=BoardChange.COMPACTED, session_id=SessionId("s-4"), upto=4, freed=9)
    )

    assert boards.of("s-4") == Board(compacted=4)


def test_a_compacted_board_holds_its_summaries_and_what_came_after() -> None:
    play = room(0)
    first = note(play, "abc")
    later = note(play, "meanwhile")
    summed_up(play, first)
    play.do(CompactBoard(session="room", upto=first.seq, freed=3))
    board = play.room.boards.of(None)
    (summary,) = [event for event in play.all(NoteAdded) if event.stands_for]
    views = [note_of(event) for event in (first, later, summary)]

    assert [board.holds(view) for view in views if view] == [False, True, True]


def test_only_a_known_board_is_compacted() -> None:
    command = CompactBoard(session="s-99", upto=1, freed=1)

    assert room(0).refuse(command, NotFound).message == "unknown session 's-99'"


def test_a_board_is_crowded_from_four_fifths_of_its_limit() -> None:
    assert not Board(bytes=80).is_crowded(100)
    assert Board(bytes=81).is_crowded(100)
    assert not Board(bytes=81).is_crowded(0)
