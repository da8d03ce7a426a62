"""Commands for boards: write notes, request summaries and store the results."""

from typing import Final

from csp.errors import BadInput, NotFound, Refused
from csp.protocol import events
from csp.protocol.enums import ALL, DEFAULT_THREAD, HUMAN, SYSTEM, UNDELIVERED, Ending, SessionId
from csp.protocol.notes import ROOM_BOARD, BoardChange, NoteKind, Source
from csp.protocol.notices import NoticeCode
from csp.room.agent_text import Envelope
from csp.room.board_state import Ask, note_id
from csp.room.commands import CompactBoard, SetBoardProvider, Summarise, WriteNote
from csp.room.duplicate_messages import OWN_ID
from csp.room.membership import known_participant
from csp.room.messages import check_queues, expiry
from csp.room.room_draft import RoomDraft
from csp.room.room_state import Room
from csp.room.secrets import redact
from csp.room.visibility import seals_on

_REDACTED_TAG: Final = "redacted"


def write(draft: RoomDraft, command: WriteNote) -> None:
    """Write a note with its secrets redacted."""
    if command.id is not None:
        if OWN_ID.match(command.id):
            problem = f"id {command.id!r} has the format of the room's own ids"
            raise BadInput(problem, "use, for example, a UUID")
        author, _ = draft.room.boards.keys.get(command.id, ("", ""))
        if author == command.sender:
            return
        if author:
            problem = f"id {command.id!r} is already used by another participant's note"
            raise Refused(problem, "use a new id")
    if not command.text.strip():
        raise BadInput("the note is blank", "give the text of the note")
    rules = draft.rules
    text = redact(command.text, rules.secrets)
    if not has_space(draft, command.session, text):
        what = f"the whiteboard of {command.session or ROOM_BOARD} is full ({rules.board_max_bytes} bytes)"
        raise Refused(what, "have it summarised: csp board summarise --by AGENT, or raise CSP_BOARD_MAX_KB")
    # A tag that contains a secret is replaced as a whole.
    tags = (tag if redact(tag, rules.secrets) == tag else _REDACTED_TAG for tag in command.tags)
    known, thread = _known_board(draft.room, command.session)
    header = draft.header(command.sender, ALL, text, thread=thread, id=note_id(draft.next_seq))
    draft.emit(
        events.NoteAdded(
            *header,
            idx=draft.room.boards.of(known).next_idx,
            session_id=known,
            tags=tuple(dict.fromkeys(tags)),
            key=command.id or "",
            seals=draft.sessions.seals_of(command.sender),
        )
    )


def has_space(draft: RoomDraft, session: str | None, text: str) -> bool:
    """Return whether a text still fits on a board."""
    size = len(text.encode(errors="replace"))
    return draft.room.boards.of(session).has_space(size, draft.rules.board_max_bytes)


def notice_full(draft: RoomDraft, session: SessionId, thread: str) -> None:
    """Post a single notice when a session's replies no longer fit on its board."""
    if draft.room.boards.of(session).is_full:
        return
    text = f"the whiteboard of {session} is full, so replies are no longer added"
    header = draft.header(SYSTEM, ALL, text, thread=thread)
    draft.emit(events.BoardChanged(*header, change=BoardChange.FULL, session_id=session))
    draft.notice(HUMAN, NoticeCode.BOARD_FULL(board=session), session=session, thread=thread)


def _known_board(room: Room, session: str | None) -> tuple[SessionId | None, str]:
    """Return a board's session and its thread; the session is None for the room's own board."""
    if session in (None, ROOM_BOARD):
        return None, DEFAULT_THREAD
    found = room.sessions.get(session)
    if found is None and session not in room.boards.by_name:
        raise NotFound(f"unknown session {session!r}", "see: csp mode show")
    return SessionId(str(session)), found.thread if found else DEFAULT_THREAD


# --- summaries -----------------------------------------------------------------------------------


def summarise(draft: RoomDraft, command: Summarise) -> None:
    """Request a summary; a board has at most one summary in progress."""
    room = draft.room
    known, thread = _known_board(room, command.session)
    board, by = room.boards.of(known), known_participant(room, command.by).id
    if board.ask is not None and board.awaits(draft.clock):
        hint = f"wait for it, or withdraw it with: csp cancel {board.ask.message}"
        raise Refused(f"{board.ask.by} is writing a summary of {command.session}", hint)
    if not command.stands_for:
        raise Refused(f"there is nothing new on the board of {command.session}", "see: csp board show")
    check_queues(room, (by,), command.text)
    expires = expiry(draft, (by,), command.ttl_s)
    message = events.SystemReply(
        *draft.message_header(SYSTEM, by, command.text, thread=thread), recipients=(by,), expires=expires
    )
    draft.emit(message)
    text = f"{by} was asked to sum up {len(command.stands_for)} notes of {command.session}"
    draft.emit(
        events.BoardChanged(
            *draft.header(SYSTEM, ALL, text, thread=thread),
            change=BoardChange.ASKED,
            session_id=known,
            message=message.id,
            by=by,
            stands_for=command.stands_for,
        )
    )


def conclude(draft: RoomDraft) -> None:
    """Add the summaries among the answers to their boards; record those that will not arrive as failed."""
    boards = draft.before.boards
    if not boards.asks:
        return
    asks = {name: boards.of(name).ask for name in boards.asks.values()}
    asked = {ask.message: (name, ask) for name, ask in asks.items() if ask is not None}
    for event in list(draft.events):
        match event:
            case events.AgentResponse() if event.reply_to in asked:
                _accept_summary(draft, event, *asked.pop(event.reply_to))
            case events.DeliveryMoved() if event.message in asked and event.state in UNDELIVERED:
                _fail(draft, *asked.pop(event.message), f"it was {event.state}")
            case events.Left(removed=True):
                for key in [key for key, (_, ask) in asked.items() if ask.by == event.sender]:
                    _fail(draft, *asked.pop(key), "it was removed")
            case _:
                pass


def _accept_summary(draft: RoomDraft, reply: events.AgentResponse, name: str, ask: Ask) -> None:
    if reply.sender != ask.by:
        return
    text = redact(Envelope.parse(reply.text).message.strip(), draft.rules.secrets)
    if reply.ending is not Ending.DONE or not text:
        _fail(draft, name, ask, f"it was {reply.ending}" if text else "it was blank")
        return
    known, thread = _known_board(draft.room, name)
    draft.emit(
        events.NoteAdded(
            *draft.header(ask.by, ALL, text, thread=thread, id=note_id(draft.next_seq)),
            idx=draft.room.boards.of(known).next_idx,
            session_id=known,
            kind=NoteKind.SUMMARY,
            stands_for=ask.stands_for,
            source=Source(seq=reply.seq, type=events.type_of(reply), id=reply.id),
            seals=dict(seals_on(reply)),
        )
    )


def _fail(draft: RoomDraft, name: str, ask: Ask, why: str) -> None:
    known, thread = _known_board(draft.room, name)
    text = f"the summary of {name} by {ask.by} failed: {why}"
    header = draft.header(SYSTEM, ALL, text, thread=thread)
    draft.emit(
        events.BoardChanged(
            *header, change=BoardChange.FAILED, session_id=known, message=ask.message, by=ask.by
        )
    )
    words = NoticeCode.SUMMARY_FAILED(board=name, agent=ask.by, why=why)
    draft.notice(HUMAN, words, session=known, thread=thread)


# --- providers -----------------------------------------------------------------------------------


def keep_notes(draft: RoomDraft, command: SetBoardProvider) -> None:
    """Record which provider stores a board's notes, unless that is already recorded."""
    known, thread = _known_board(draft.room, command.session)
    board = draft.room.boards.of(known)
    if (board.provider, board.store) == (command.provider, command.store):
        return
    draft.emit(
        events.BoardChanged(
            *draft.header(
                SYSTEM, ALL, f"the board of {command.session} is stored by {command.provider}", thread=thread
            ),
            change=BoardChange.PROVIDER,
            session_id=known,
            provider=command.provider,
            store=command.store,
        )
    )
    if command.problem:
        words = NoticeCode.BOARD_LOCAL(board=command.session, problem=command.problem)
        draft.notice(HUMAN, words, session=known, thread=thread)


# --- size ----------------------------------------------------------------------------------------


def compact(draft: RoomDraft, command: CompactBoard) -> None:
    """Remove notes from a board; only summarised notes are removed, and only once."""
    known, thread = _known_board(draft.room, command.session)
    board = draft.room.boards.of(known)
    if board.compacted < command.upto <= board.summed:
        text = f"the notes of {command.session} up to {note_id(command.upto)} were replaced by its summaries"
        draft.emit(
            events.BoardChanged(
                *draft.header(SYSTEM, ALL, text, thread=thread),
                change=BoardChange.COMPACTED,
                session_id=known,
                upto=command.upto,
                freed=command.freed,
            )
        )
