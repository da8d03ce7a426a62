"""What is done to a board: notes are written, summaries asked for, the answers taken."""

from typing import Any, Final

from csp.errors import BadInput, NotFound, Refused
from csp.protocol.enums import ALL, DEFAULT_THREAD, HUMAN, SYSTEM, AgentId, DeliveryState, Ending, SessionId
from csp.protocol.events import (
    AgentResponse,
    BoardChanged,
    DeliveryMoved,
    Left,
    NoteAdded,
    SystemReply,
    type_of,
)
from csp.protocol.notes import ROOM_BOARD, BoardChange, NoteKind, Source
from csp.room.agent_text.envelope import Envelope
from csp.room.board.board_state import Ask, note_id
from csp.room.commands import CompactBoard, SetBoardProvider, Summarise, WriteNote
from csp.room.membership import known_participant
from csp.room.messages.send import OWN_ID, check_queues, hold_and_expiry
from csp.room.room_draft import RoomDraft
from csp.room.room_rules import RoomRules
from csp.room.room_state import Room
from csp.room.secrets import redact
from csp.room.visibility import seals_on

#: An ask that ends in one of these states will never be answered.
_LOST: Final = frozenset({DeliveryState.FAILED, DeliveryState.WITHDRAWN, DeliveryState.EXPIRED})
_REDACTED_TAG: Final = "redacted"
_COUNTED: Final = (NoteAdded, AgentResponse)


def place_on_board(room: Room, batch: RoomDraft, session: str | None) -> int:
    """Return the index of the next note on a board, after those of the batch."""
    here = [event for event in batch.events if isinstance(event, _COUNTED) and event.idx is not None]
    new = sum(1 for event in here if (event.session_id or ROOM_BOARD) == (session or ROOM_BOARD))
    return room.boards.of(session).next_idx + new


def write(room: Room, command: WriteNote, batch: RoomDraft, rules: RoomRules) -> None:
    """Write a note, without the secrets in it."""
    if command.id is not None and _is_repeated(room, command):
        return
    if not command.text.strip():
        raise BadInput("the note is blank", "say what should stand on the board")
    text = redact(command.text, rules.secrets)
    if not has_space(room, command.session, text, rules):
        what = f"the whiteboard of {command.session or ROOM_BOARD} is full ({rules.board_max_bytes} bytes)"
        raise Refused(what, "have it summed up: csp board summarise --by AGENT, or raise CSP_BOARD_MAX_KB")
    tags = (_clean_tag(tag, rules) for tag in command.tags)
    seals = batch.sessions.seals_of(command.sender) if batch.has_sessions else {}
    fields = {"key": command.id or "", "tags": tuple(dict.fromkeys(tags)), "seals": seals}
    _add(room, batch, command.sender, command.session, text, fields)


def has_space(room: Room, session: str | None, text: str, rules: RoomRules) -> bool:
    """Tell whether a text may still stand on a board."""
    size = len(text.encode(errors="replace"))
    return room.boards.of(session).has_space(size, rules.board_max_bytes)


def tell_full(room: Room, batch: RoomDraft, session: SessionId, thread: str) -> None:
    """Tell people once that the replies of a session have no place on its board any more."""
    if room.boards.of(session).is_full:
        return
    text = f"the whiteboard of {session} is full, so replies are no longer put on it"
    _change(batch, session, BoardChange.FULL, text, {}, thread)
    hint = "have it summed up with csp board summarise, or raise CSP_BOARD_MAX_KB"
    batch.notice(HUMAN, f"{text[0].upper()}{text[1:]}; {hint}.", session=session, thread=thread)


def _clean_tag(tag: str, rules: RoomRules) -> str:
    """Return a tag as it may be kept: one with a secret in it says only that it had one."""
    return tag if redact(tag, rules.secrets) == tag else _REDACTED_TAG


def _add(
    room: Room, batch: RoomDraft, sender: AgentId, session: str | None, text: str, fields: dict[str, Any]
) -> None:
    known, thread = _known_board(room, session)
    idx = place_on_board(room, batch, known)
    batch.add(
        NoteAdded,
        sender,
        ALL,
        text,
        {"idx": idx, "session_id": known, **fields},
        thread=thread,
        id=note_id(batch.next_seq),
    )


def _is_repeated(room: Room, command: WriteNote) -> bool:
    key = command.id or ""
    if OWN_ID.match(key):
        raise BadInput(f"id {key!r} has the form of the room's own ids", "use a uuid, for example")
    known = room.boards.keys.get(key)
    if known is not None and known[0] != command.sender:
        raise Refused(f"id {key!r} is taken by somebody else's note", "use a new id")
    return known is not None


def _known_board(room: Room, session: str | None) -> tuple[SessionId | None, str]:
    """Return the session of a board with its thread; none for the room's own board."""
    if session in (None, ROOM_BOARD):
        return None, DEFAULT_THREAD
    found = room.sessions.get(session)
    if found is None and session not in room.boards.by_name:
        raise NotFound(f"unknown session {session!r}", "see: csp mode show")
    return SessionId(str(session)), found.thread if found else DEFAULT_THREAD


# --- summaries -----------------------------------------------------------------------------------


def summarise(room: Room, command: Summarise, batch: RoomDraft) -> None:
    """Ask for a summary; only one is written of a board at a time."""
    known, thread = _known_board(room, command.session)
    board, by = room.boards.of(known), known_participant(room, command.by).id
    if board.ask is not None and board.awaits(batch.clock):
        hint = f"wait for it, or withdraw it with: csp cancel {board.ask.message}"
        raise Refused(f"{board.ask.by} is writing a summary of {command.session}", hint)
    if not command.stands_for:
        raise Refused(f"there is nothing new on the board of {command.session}", "see: csp board show")
    check_queues(room, (by,), command.text, batch)
    fields = {"recipients": (by,), **hold_and_expiry(batch, (by,), 0, command.ttl_s)}
    batch.add(SystemReply, SYSTEM, by, command.text, fields, thread=thread)
    asked = {"message": batch.events[-1].id, "by": by, "stands_for": command.stands_for}
    text = f"{by} was asked to sum up {len(command.stands_for)} notes of {command.session}"
    _change(batch, known, BoardChange.ASKED, text, asked, thread)


def conclude(room: Room, batch: RoomDraft, rules: RoomRules) -> None:
    """Take the summaries among the answers of a batch; note of those that will not come that they failed."""
    if not room.boards.asks:
        return
    boards = {name: room.boards.of(name).ask for name in room.boards.asks.values()}
    asked = {ask.message: (name, ask) for name, ask in boards.items() if ask is not None}
    for event in list(batch.events):
        match event:
            case AgentResponse() if event.reply_to in asked:
                _take(room, batch, rules, event, *asked.pop(event.reply_to))
            case DeliveryMoved() if event.message in asked and event.state in _LOST:
                _fail(room, batch, *asked.pop(event.message), f"it was {event.state}")
            case Left(removed=True):
                for key in [key for key, (_, ask) in asked.items() if ask.by == event.sender]:
                    _fail(room, batch, *asked.pop(key), "it was removed")
            case _:
                pass


def _take(room: Room, batch: RoomDraft, rules: RoomRules, reply: AgentResponse, name: str, ask: Ask) -> None:
    if reply.sender != ask.by:
        return
    text = redact(Envelope.parse(reply.text).message.strip(), rules.secrets)
    if reply.ending is not Ending.DONE or not text:
        _fail(room, batch, name, ask, f"it was {reply.ending}" if text else "it was blank")
        return
    source = Source(seq=reply.seq, type=type_of(reply), id=reply.id)
    fields = {"kind": NoteKind.SUMMARY, "stands_for": ask.stands_for, "source": source}
    fields["seals"] = dict(seals_on(reply))
    _add(room, batch, ask.by, name, text, fields)


def _fail(room: Room, batch: RoomDraft, name: str, ask: Ask, why: str) -> None:
    known, thread = _known_board(room, name)
    text = f"the summary of {name} by {ask.by} came to nothing: {why}"
    _change(batch, known, BoardChange.FAILED, text, {"message": ask.message, "by": ask.by}, thread)
    batch.notice(HUMAN, f"{text[0].upper()}{text[1:]}. The board is as it was.", session=known, thread=thread)


# --- providers -----------------------------------------------------------------------------------


def keep_notes(room: Room, command: SetBoardProvider, batch: RoomDraft) -> None:
    """Note who keeps a board; nothing is said twice."""
    known, thread = _known_board(room, command.session)
    board = room.boards.of(known)
    if (board.provider, board.store) != (command.provider, command.store):
        fields = {"provider": command.provider, "store": command.store}
        text = f"the board of {command.session} is kept by {command.provider}"
        _change(batch, known, BoardChange.PROVIDER, text, fields, thread)
        if command.notice:
            batch.notice(HUMAN, command.notice, session=known, thread=thread)


# --- size ----------------------------------------------------------------------------------------


def compact(room: Room, command: CompactBoard, batch: RoomDraft) -> None:
    """Take notes off a board; only what a summary stands for goes, and only once."""
    known, thread = _known_board(room, command.session)
    board = room.boards.of(known)
    if board.compacted < command.upto <= board.summed:
        fields = {"upto": command.upto, "freed": command.freed}
        text = f"the notes of {command.session} up to {note_id(command.upto)} are left to its summaries"
        _change(batch, known, BoardChange.COMPACTED, text, fields, thread)


def _change(
    batch: RoomDraft,
    session: SessionId | None,
    change: BoardChange,
    text: str,
    fields: dict[str, Any],
    thread: str,
) -> None:
    batch.add(
        BoardChanged, SYSTEM, ALL, text, {"change": change, "session_id": session, **fields}, thread=thread
    )
