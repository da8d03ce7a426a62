"""The whiteboards of a room: notes that all participants can search, counted per session.

A note is an event: either a written note or a session's reply that is added to its board. No index is used
twice, because `Boards.apply` only counts up.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, TypeGuard, assert_never

import msgspec
from msgspec.structs import replace

from csp.protocol.enums import ALL, AgentId, MessageId
from csp.protocol.events import AgentResponse, AnyEvent, BoardChanged, NoteAdded, type_of
from csp.protocol.notes import (
    ROOM_BOARD,
    BoardChange,
    FileView,
    HitView,
    NoteKind,
    NoteView,
    Provider,
    Source,
)
from csp.protocol.responses import BoardsHealth
from csp.room.secrets import redact
from csp.room.sessions.session_state import CHARS_PER_TOKEN, WindowItem, cut, tokens_in
from csp.room.sessions.turn_prompt import render

#: Number of ids chosen by writers that are remembered, to recognise a note that is sent again.
KEPT_KEYS: Final = 1000
#: Time limit of a summary, and the number of notes after a failed summary until the next request.
ASK_S: Final = 600.0
RETRY_AFTER: Final = 10
#: The share of its size limit at which a board is compacted.
CROWDED: Final = 0.8
#: Token budget for search hits in the window of a turn; a smaller part of a note is useless.
HIT_TOKENS: Final = 800
_LEAST_TOKENS: Final = 30
#: Token budget for the notes in a summary prompt, and the size limit of the previous summary.
SUMMARY_TOKENS: Final = 12_000
_BEFORE_CHARS: Final = 8_000


class Ask(msgspec.Struct, frozen=True, array_like=True):
    """A summary in progress: the message that requests it, its author, the request time and its notes."""

    message: MessageId
    by: AgentId
    at: float
    stands_for: tuple[MessageId, ...]


class Board(msgspec.Struct, frozen=True, omit_defaults=True):
    """The counters of a board, without its notes; `fresh` is the number of notes since the last summary."""

    next_idx: int = 0
    fresh: int = 0
    ask: Ask | None = None
    #: The index at which the last summary failed.
    failed_at: int | None = None
    #: The provider that stores its notes for searching, once chosen, and the id of the store there.
    provider: Provider | None = None
    store: str = ""
    #: The size of its text, the last event that a summary covers, and the last event that was compacted.
    bytes: int = 0
    summed: int = 0
    compacted: int = 0
    #: Whether people were notified that it is full.
    is_full: bool = False

    def has_space(self, size: int, limit: int) -> bool:
        """Return whether `size` more bytes fit on the board; a limit of 0 means no limit."""
        return not limit or self.bytes + size <= limit

    def holds(self, note: NoteView) -> bool:
        """Return whether a note is still on the board; summaries replace compacted notes."""
        return note.kind is NoteKind.SUMMARY or seq_of(note.id) > self.compacted

    def is_crowded(self, limit: int) -> bool:
        """Return whether the board should be compacted before it is full."""
        return 0 < limit * CROWDED < self.bytes

    def awaits(self, now: float) -> bool:
        """Return whether a summary is in progress; a request that is too old no longer counts."""
        return self.ask is not None and now - self.ask.at < ASK_S

    def is_due(self, threshold: int, now: float) -> bool:
        """Return whether a summary is due."""
        has_failed = self.failed_at is not None and self.next_idx - self.failed_at < RETRY_AFTER
        return 0 < threshold <= self.fresh and not has_failed and not self.awaits(now)


class Boards(msgspec.Struct, omit_defaults=True):
    by_name: dict[str, Board] = msgspec.field(default_factory=dict)
    #: Notes with an id chosen by the writer, oldest first.
    keys: dict[str, tuple[AgentId, MessageId]] = msgspec.field(default_factory=dict)
    #: Boards with a summary in progress, by the message that requests it.
    asks: dict[MessageId, str] = msgspec.field(default_factory=dict)

    def of(self, session: str | None) -> Board:
        """Return a board, which is empty if it has no notes."""
        return self.by_name.get(session or ROOM_BOARD, Board())

    def apply(self, event: AnyEvent) -> None:
        """Update the board that an event is about."""
        match event:
            case NoteAdded():
                self._count(event, event.idx)
                if event.key:
                    self.keys[event.key] = event.sender, event.id
                    if len(self.keys) > KEPT_KEYS:
                        del self.keys[next(iter(self.keys))]
            case AgentResponse(idx=int(idx)):
                self._count(event, idx)
            case BoardChanged():
                name = event.session_id or ROOM_BOARD
                self._put(name, _changed(self.of(name), event))
            case _:
                pass

    def _count(self, event: NoteAdded | AgentResponse, idx: int) -> None:
        name = event.session_id or ROOM_BOARD
        board = self.of(name)
        after = max(board.next_idx, idx + 1)
        board = replace(board, next_idx=after, fresh=board.fresh + 1, bytes=board.bytes + text_bytes(event))
        if is_summary(event):
            # Notes that arrived while the summary was being written are not part of it.
            fresh = max(0, board.fresh - 1 - len(event.stands_for))
            summed = max(map(seq_of, event.stands_for), default=board.summed)
            board = replace(board, fresh=fresh, summed=summed, ask=None, failed_at=None)
        self._put(name, board)

    def _put(self, name: str, board: Board) -> None:
        before = self.of(name)
        if before.ask is not None:
            self.asks.pop(before.ask.message, None)
        if board.ask is not None:
            self.asks[board.ask.message] = name
        self.by_name[name] = board


def _changed(board: Board, event: BoardChanged) -> Board:
    match event.change:
        case BoardChange.ASKED:
            ask = Ask(event.message or event.id, event.by or event.target, event.ts, event.stands_for)
            return replace(board, ask=ask)
        case BoardChange.FAILED:
            return replace(board, ask=None, failed_at=board.next_idx)
        case BoardChange.PROVIDER:
            return replace(board, provider=event.provider or Provider.LOCAL, store=event.store)
        case BoardChange.FULL:
            return replace(board, is_full=True)
        case BoardChange.COMPACTED:
            left = max(0, board.bytes - event.freed)
            return replace(board, bytes=left, compacted=event.upto, is_full=False)
        case _:
            assert_never(event.change)


# --- notes ---------------------------------------------------------------------------------------


def note_id(seq: int) -> MessageId:
    """Return the id of the note in the event with this number."""
    return MessageId(f"n-{seq}")


def seq_of(note: str) -> int:
    """Return the number of the event that contains a note."""
    return int(note.removeprefix("n-"))


def note_of(event: AnyEvent, known_secrets: Iterable[str] = ()) -> NoteView | None:
    """Return the note in an event with its secrets redacted, or None if the event is not a note."""
    match event:
        case NoteAdded():
            kind, tags, stands_for, source = event.kind, event.tags, event.stands_for, event.source
            idx, text = event.idx, event.text
        case AgentResponse(idx=int(idx)):
            kind, tags, stands_for = NoteKind.REPLY, (), ()
            source = Source(seq=event.seq, type=type_of(event), id=event.id)
            text = redact(event.text, known_secrets)
        case _:
            return None
    return NoteView(
        id=note_id(event.seq),
        idx=idx,
        session=event.session_id or ROOM_BOARD,
        thread=event.thread,
        author=event.sender,
        text=text,
        tags=tags,
        kind=kind,
        source=source,
        ts=event.ts,
        stands_for=stands_for,
    )


def is_summary(event: NoteAdded | AgentResponse) -> TypeGuard[NoteAdded]:
    """Return whether a note is a summary of other notes."""
    return isinstance(event, NoteAdded) and event.kind is NoteKind.SUMMARY


def text_bytes(event: NoteAdded | AgentResponse) -> int:
    """Return the size of a note's text in bytes."""
    return len(event.text.encode(errors="replace"))


def file_of(note: NoteView) -> FileView:
    """Return the name of the file that a note is exported to."""
    return FileView(path=f"whiteboard/{note.session}/{note.idx:04d}_{note.author}.txt", text=note.text)


def boards_health(boards: Boards, limit: int) -> BoardsHealth:
    """Return the number and sizes of the boards."""
    known = boards.by_name.values()
    return BoardsHealth(
        count=len(known),
        notes=sum(board.next_idx for board in known),
        bytes=sum(board.bytes for board in known),
        largest_bytes=max((board.bytes for board in known), default=0),
        max_bytes=limit,
    )


# --- summaries -----------------------------------------------------------------------------------


def summary_prompt(
    prompts: Mapping[str, str], name: str, notes: Sequence[NoteView], before: NoteView | None
) -> str:
    """Return the prompt that asks for a summary of these notes; each gets an equal share of the space."""
    share = max(SUMMARY_TOKENS * CHARS_PER_TOKEN // max(len(notes), 1), _LEAST_TOKENS * CHARS_PER_TOKEN)
    values = {
        "board": name,
        "count": str(len(notes)),
        "before": cut(before.text, _BEFORE_CHARS) if before else "(there is none)",
        "notes": "\n\n".join(f"[{note.id}] {note.author}: {cut(note.text, share)}" for note in notes),
    }
    return render(prompts, "summarise", values)


# --- hits in the window of a turn ----------------------------------------------------------------


def hits_as_items(
    hits: Iterable[HitView], budget: int = HIT_TOKENS, known: Collection[MessageId] = ()
) -> list[WindowItem]:
    """Return the best hits that fit into `budget` tokens as items of a window, oldest first.

    Notes that the window already contains (ids in `known`) are omitted.
    """
    kept: dict[int, WindowItem] = {}
    for hit in hits:
        note = hit.note
        if note.id in known or (note.source is not None and note.source.id in known):
            continue
        if budget < _LEAST_TOKENS:
            break
        text = cut(note.text, budget * CHARS_PER_TOKEN)
        budget -= tokens_in(text)
        kept[seq_of(note.id)] = WindowItem(id=note.id, sender=note.author, target=ALL, text=text)
    return [kept[seq] for seq in sorted(kept)]
