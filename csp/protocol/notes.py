"""Whiteboard types: notes, and the requests to write and search them."""

import re
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta

from csp.protocol.enums import AgentId, MessageId, Name, OwnId, Struct, Text
from csp.protocol.requests import Seq

#: The name of the board that belongs to no session.
ROOM_BOARD: Final = "room"

BoardName = Annotated[str, Meta(pattern=r"^(room|s-\d{1,16})\Z", examples=["room", "s-4"])]
Tag = Annotated[str, Meta(pattern=r"^[^\s,\x00-\x1f\x7f]{1,64}\Z", examples=["parser"])]
_NOTE_ID: Final = re.compile(r"n-\d{1,15}")
_Time = Annotated[float, Meta(ge=0, le=1e11)]


class NoteKind(StrEnum):
    NOTE = "note"
    REPLY = "reply"
    SUMMARY = "summary"


class FoundBy(StrEnum):
    """Why a note is a search hit: an identifier in it, its words, or its meaning."""

    EXACT = "exact"
    WORDS = "words"
    MEANING = "meaning"


class Provider(StrEnum):
    LOCAL = "local"
    OPENAI = "openai"


class BoardChange(StrEnum):
    ASKED = "asked"
    FAILED = "failed"
    PROVIDER = "provider"
    FULL = "full"
    COMPACTED = "compacted"


class Source(Struct, frozen=True):
    """The event from which a note was created."""

    seq: int
    type: str
    id: MessageId


class NoteView(Struct, frozen=True):
    """One note; `idx` is its position in its session, `stands_for` lists the notes that a summary covers."""

    id: MessageId
    idx: int
    session: str
    thread: str
    author: AgentId
    text: str
    tags: tuple[str, ...]
    kind: NoteKind
    source: Source | None
    ts: float
    stands_for: tuple[MessageId, ...] = ()


class HitView(Struct, frozen=True):
    note: NoteView
    score: float
    how: FoundBy


class BoardBody(Struct, frozen=True):
    """A new note for a session's board or the room's board; a repeated id writes nothing."""

    text: Text
    session: BoardName | None = None
    tags: Annotated[tuple[Tag, ...], Meta(max_length=16)] = ()
    id: OwnId | None = None


class SummariseBody(Struct, frozen=True):
    """The board to summarise and the agent to summarise it."""

    by: Name
    session: BoardName | None = None


class BoardParams(Struct, frozen=True):
    session: BoardName | None = None
    author: Annotated[str, Meta(max_length=128)] | None = None
    tag: Tag | None = None
    kind: NoteKind | None = None
    after: Seq | None = None
    before: Seq | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 50


class SearchParams(Struct, frozen=True):
    """A search; `since` and `until` are times, and `rerank` compares more notes word by word."""

    q: Annotated[str, Meta(min_length=1, max_length=1000, examples=["parser"])]
    session: BoardName | None = None
    author: Annotated[str, Meta(max_length=128)] | None = None
    tag: Tag | None = None
    kind: NoteKind | None = None
    since: _Time | None = None
    until: _Time | None = None
    limit: Annotated[int, Meta(ge=1, le=100)] = 10
    rerank: Annotated[int, Meta(ge=0, le=1)] = 0


class ExportParams(Struct, frozen=True):
    session: BoardName | None = None


class NotedView(Struct, frozen=True):
    success: bool
    note: NoteView


class BoardView(Struct, frozen=True, omit_defaults=False):
    """A page of notes, oldest first; `next` is the seq of the next page."""

    items: tuple[NoteView, ...]
    next: int | None


class BoardHitsView(Struct, frozen=True, omit_defaults=False):
    """The hits, best first, and the provider that found them."""

    items: tuple[HitView, ...]
    provider: Provider
    took_ms: float


class SummaryAskedView(Struct, frozen=True):
    """The message that requests a summary, and the notes that it will cover."""

    success: bool
    id: MessageId
    by: AgentId
    session: str
    stands_for: tuple[MessageId, ...]


class FileView(Struct, frozen=True):
    path: str
    text: str


class ExportView(Struct, frozen=True):
    files: tuple[FileView, ...]


def is_note_id(text: str) -> bool:
    """Return whether a text has the form of a note's id."""
    return _NOTE_ID.fullmatch(text) is not None
