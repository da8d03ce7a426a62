"""The line with which a pruned journal begins."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from csp.gateway import pruned_journal
from csp.protocol.enums import HUMAN, AgentId, MessageId, SessionId
from csp.protocol.events import (
    HumanMessage,
    PrunedBase,
    decode_event,
    encode_event,
    room_id_in,
)
from csp.room.room_state import Room, dump

CLAUDE = AgentId("claude")


def test_the_first_line_of_a_pruned_journal_holds_the_room_without_its_texts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []
    full, bare = Room(), Room()
    bare.ts = 5.0

    def room_before(journal: object, before: int) -> Room:
        asked.append(before)
        return full

    def without_texts(room: Room) -> Room:
        assert room is full
        return bare

    monkeypatch.setattr(pruned_journal, "room_before", room_before)
    monkeypatch.setattr(pruned_journal, "without_texts", without_texts)
    journal: Any = SimpleNamespace(room_id="0f6e5f0c-6f0f-5a3e-9d0b-3a6e2f6f1c77")
    line = pruned_journal.base_line(journal, 7)
    base = decode_event(line)

    assert isinstance(base, PrunedBase) and asked == [7]
    assert room_id_in(line) == journal.room_id
    assert (base.seq, base.id, base.ts, bytes(base.state)) == (6, "e-6", 5.0, dump(bare))


@pytest.mark.parametrize(("before", "seqs"), [(1, []), (7, []), (8, [7]), (9, [7, 8])])
def test_the_room_before_an_event_has_heard_of_those_before_it_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, before: int, seqs: list[int]
) -> None:
    events = [said(HUMAN, None), msgspec.structs.replace(said(HUMAN, None), seq=8)]
    heard: list[int] = []

    def apply(room: Room, event: HumanMessage) -> Room:
        heard.append(event.seq)
        if event.seq == 7:
            raise msgspec.ValidationError("odd")
        return room

    monkeypatch.setattr(pruned_journal, "apply", apply)
    monkeypatch.setattr(pruned_journal, "events_after", lambda journal, seq: iter(events))
    journal: Any = None
    pruned_journal.room_before(journal, before)

    assert heard == seqs
    assert caplog.messages == ["journal line skipped"] * (7 in seqs)


def test_the_whole_journal_is_read_and_what_is_no_event_is_passed_over() -> None:
    lines = [encode_event(said(HUMAN, None)), b"odd", encode_event(said(CLAUDE, None))]
    asked: list[int] = []

    def lines_after(seq: int) -> Iterator[bytes]:
        asked.append(seq)
        return iter(lines)

    journal: Any = SimpleNamespace(view=SimpleNamespace(lines_after=lines_after))
    found = list(pruned_journal.events_after(journal, 4))

    assert [event.sender for event in found] == [HUMAN, CLAUDE]
    assert asked == [4]


def said(sender: AgentId, session: str | None) -> HumanMessage:
    at = SessionId(session) if session else None
    return HumanMessage(
        7, 1.0, MessageId("m-7"), sender, CLAUDE, "default", "text", recipients=(CLAUDE,), session_id=at
    )
