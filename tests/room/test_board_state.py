"""The tests of the whiteboard's state."""

from typing import Any, cast

import pytest

from csp.protocol.enums import ALL, SYSTEM, AgentId, MessageId, SessionId
from csp.protocol.events import AgentResponse, BoardChanged
from csp.protocol.notes import BoardChange, FoundBy, HitView, NoteKind, NoteView, Provider, Source
from csp.room.board_state import (
    ASK_S,
    KEPT_KEYS,
    RETRY_AFTER,
    SUMMARY_TOKENS,
    Ask,
    Board,
    Boards,
    file_of,
    hits_as_items,
    note_of,
    seq_of,
    summary_prompt,
)
from csp.room.commands import WriteNote
from csp.room.room_reducer import replay
from csp.room.room_state import dump, load
from csp.room.sessions.session_state import CHARS_PER_TOKEN
from tests.room.live import CLAUDE, CODEX, LiveRoom
from tests.room.playing import RULES, Play

ASK = Ask(MessageId("m-1"), CLAUDE, 1000.0, ())


def note(seq: int, text: str, source: str | None = None) -> NoteView:
    return NoteView(
        id=MessageId(f"n-{seq}"),
        idx=seq,
        session="s-4",
        thread="default",
        author=AgentId("claude"),
        text=text,
        tags=(),
        kind=NoteKind.NOTE,
        source=Source(seq=seq, type="agent_response", id=MessageId(source)) if source else None,
        ts=1.0,
    )


def hit(seq: int, text: str, source: str | None = None) -> HitView:
    return HitView(note=note(seq, text, source), score=1.0, how=FoundBy.WORDS)


# --- counting ------------------------------------------------------------------------------------


def test_index_counts_for_each_board() -> None:
    play = Play()
    play.start("round_robin", steps=2)
    session = play.session.id
    for board in (None, session, None, session):
        play.do(WriteNote(sender=CLAUDE, text="x", session=board))

    assert (play.room.boards.of(None).next_idx, play.room.boards.of(session).next_idx) == (2, 2)
    assert play.room.boards.of("s-99") == Board()


def test_replay_gives_the_same_boards() -> None:
    play = Play()
    play.start("round_robin", steps=2)
    play.reply(CLAUDE, "here")
    play.do(WriteNote(sender=CLAUDE, text="x", id="own"))

    assert replay(play.journal).boards == play.room.boards == load(dump(play.room)).boards


def test_replies_of_a_session_have_their_places_on_its_board() -> None:
    play = Play()
    play.start("round_robin", steps=3)
    for agent in play.session.agents:
        play.reply(agent, f"I am {agent}")
    notes = [note_of(event) for event in play.journal]
    found = [(one.idx, one.author, one.kind, one.text) for one in notes if one]

    assert found == [
        (number, agent, NoteKind.REPLY, f"I am {agent}") for number, agent in enumerate(play.session.agents)
    ]


def test_replies_stay_off_the_board_where_the_rules_say_so() -> None:
    from msgspec.structs import replace

    play = Play(rules=replace(RULES, board_replies=False))
    play.start("round_robin", steps=2)
    play.reply(CLAUDE, "here")

    assert play.room.boards == Boards()


def test_note_of_a_reply_says_where_it_comes_from_without_its_secrets() -> None:
    play = Play()
    play.start("round_robin", steps=2)
    play.reply(CLAUDE, "the key is sk-ant-api03-AbCdEf_123-45678901234 of tomorrow-is-a-day")
    (reply,) = play.all(AgentResponse)
    found = note_of(reply, ["tomorrow-is-a-day"])

    assert found is not None
    assert found.source == Source(seq=reply.seq, type="agent_response", id=reply.id)
    assert found.text == "the key is [redacted api key] of [redacted room token]"
    assert (found.id, seq_of(found.id)) == (f"n-{reply.seq}", reply.seq)


def test_only_the_last_keys_are_remembered() -> None:
    live = LiveRoom("claude")
    for number in range(KEPT_KEYS + 1):
        live.do(WriteNote(sender=CLAUDE, text="x", id=f"k{number}"))

    assert len(live.room.boards.keys) == KEPT_KEYS
    assert "k0" not in live.room.boards.keys


def test_lost_line_never_makes_an_index_come_again() -> None:
    live = LiveRoom("claude")
    for _ in range(3):
        live.do(WriteNote(sender=CLAUDE, text="x"))
    journal = [event for event in live.journal if event is not live.journal[-2]]

    assert replay(journal).boards.of(None).next_idx == 3


def test_provider_is_kept_with_the_board() -> None:
    boards = Boards()
    boards.apply(_changed(BoardChange.PROVIDER, provider=Provider.OPENAI, store="vs_1"))
    boards.apply(_changed(BoardChange.ASKED))

    board = boards.of("s-4")
    assert (board.provider, board.store) == (Provider.OPENAI, "vs_1")
    assert board.ask == Ask(MessageId("e-9"), ALL, 5.0, ())
    assert boards.asks == {MessageId("e-9"): "s-4"}


def test_provider_that_is_not_named_is_the_local_one() -> None:
    boards = Boards()
    boards.apply(_changed(BoardChange.PROVIDER))

    assert boards.of("s-4").provider is Provider.LOCAL


def test_change_of_no_known_kind_is_a_fault_of_ours() -> None:
    with pytest.raises(AssertionError):
        Boards().apply(_changed(cast(Any, "odd")))


def _changed(change: BoardChange, provider: Provider | None = None, store: str = "") -> BoardChanged:
    head = (9, 5.0, MessageId("e-9"), SYSTEM, ALL, "default", "x")
    return BoardChanged(*head, change=change, session_id=SessionId("s-4"), provider=provider, store=store)


# --- summaries -----------------------------------------------------------------------------------


def test_summary_is_due_at_the_threshold() -> None:
    assert Board(next_idx=50, fresh=50).is_due(50, 0.0)
    assert not Board(next_idx=50, fresh=49).is_due(50, 0.0)
    assert not Board(next_idx=50, fresh=50).is_due(0, 0.0)


def test_summary_is_not_due_while_one_is_written() -> None:
    board = Board(next_idx=50, fresh=50, ask=ASK)

    assert not board.is_due(50, 1000.0 + ASK_S - 1)
    assert board.is_due(50, 1000.0 + ASK_S)


def test_failed_summary_is_tried_again_some_notes_later() -> None:
    assert not Board(next_idx=50 + RETRY_AFTER - 1, fresh=59, failed_at=50).is_due(50, 0.0)
    assert Board(next_idx=50 + RETRY_AFTER, fresh=60, failed_at=50).is_due(50, 0.0)


def test_prompt_of_a_summary_names_each_note() -> None:
    prompts = {"summarise": "{board} {count}\n{before}\n{notes}"}
    notes = [note(3, "three"), note(9, "nine")]

    assert summary_prompt(prompts, "s-4", notes, None) == (
        "s-4 2\n(there is none)\n[n-3] claude: three\n\n[n-9] claude: nine"
    )
    assert "all was well" in summary_prompt(prompts, "s-4", notes, note(1, "all was well"))


def test_prompt_of_a_summary_stays_within_its_limit() -> None:
    prompts = {"summarise": "{notes}"}
    long = summary_prompt(prompts, "s-4", [note(n, "x" * 10_000) for n in range(100)], None)

    assert long.count("[cut]") == 100
    assert len(long) < (SUMMARY_TOKENS + 1000) * CHARS_PER_TOKEN


# --- views ---------------------------------------------------------------------------------------


def test_note_is_exported_under_its_index_with_its_speaker() -> None:
    file = file_of(note(12, "hello"))

    assert (file.path, file.text) == ("whiteboard/s-4/0012_claude.txt", "hello")


def test_hits_come_into_the_window_oldest_first() -> None:
    items = hits_as_items([hit(9, "nine"), hit(3, "three")])

    assert [(item.id, item.sender, item.target, item.text) for item in items] == [
        ("n-3", CLAUDE, ALL, "three"),
        ("n-9", CLAUDE, ALL, "nine"),
    ]


def test_best_hits_are_kept_where_not_all_fit() -> None:
    hits = [hit(9, "a" * 320), hit(3, "b" * 400), hit(5, "c")]
    items = hits_as_items(hits, budget=120)

    assert [(item.id, len(item.text)) for item in items] == [("n-3", 160), ("n-9", 320)]
    assert items[0].text.endswith(" [cut]")


def test_what_the_window_holds_already_is_not_shown_twice() -> None:
    hits = [hit(9, "nine", source="m-9"), hit(3, "three"), hit(4, "four", source="m-4")]
    items = hits_as_items(hits, known={MessageId("m-9"), MessageId("n-3")})

    assert [item.id for item in items] == ["n-4"]


def test_no_hits_make_no_items() -> None:
    assert hits_as_items([]) == []
    assert hits_as_items([hit(1, "x")], budget=0) == []


def test_other_events_are_no_notes() -> None:
    live = LiveRoom("claude", "codex")
    live.say(CLAUDE, CODEX)

    assert [note_of(event) for event in live.journal] == [None, None, None]
