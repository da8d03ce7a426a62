"""Which events a command causes, or why it is refused.

`decide` looks at the room but never changes it; a refused command leaves no trace.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from csp.protocol.enums import SYSTEM, AgentId
from csp.protocol.events import CallRecorded, ControlSent, KnownEvent, ModeChanged, RunStarted
from csp.protocol.session_parts import Change
from csp.room import membership, orchestrator, timers
from csp.room.agent_text import agent_commands
from csp.room.agent_text.agent_commands import allstop, is_allstop
from csp.room.board import board_commands
from csp.room.commands import (
    ActOnRun,
    AnswerQuery,
    AnyCommand,
    CancelMessage,
    CastVote,
    CheckRun,
    Collaborate,
    Command,
    CompactBoard,
    ControlAgent,
    DeliverRun,
    ExtendTurn,
    HandOffTurn,
    Join,
    Leave,
    NextTurn,
    Notice,
    PostReply,
    PrepareRun,
    Prune,
    RecordCall,
    RedactMessage,
    Rejoin,
    ReleaseMessage,
    Remove,
    ReportDelivery,
    SayInRun,
    Send,
    SetBoardProvider,
    SetMode,
    SetState,
    Steer,
    Stop,
    Summarise,
    Tick,
    WriteNote,
)
from csp.room.messages import send
from csp.room.room_draft import RoomDraft
from csp.room.room_rules import DEFAULT_RULES, RoomRules
from csp.room.room_state import Room
from csp.room.runs import run_commands
from csp.room.sessions import replies, session_start, steering
from csp.room.sessions.steering import react

#: After these the sessions react to what has happened to their agents.
_MOVES_AGENTS: Final = (ReportDelivery, Send, SetState, CancelMessage, Leave, Remove, RedactMessage)
#: These lead to asks, for which the whiteboard was searched.
_BRINGS_HITS: Final = (PostReply, Collaborate, Tick)


def decide(room: Room, command: AnyCommand, now: float, rules: RoomRules = DEFAULT_RULES) -> list[KnownEvent]:
    """Return the events that `command` causes; none if it changes nothing; raise if it is refused."""
    return draft_of(room, command, now, rules).events


def draft_of(room: Room, command: AnyCommand, now: float, rules: RoomRules = DEFAULT_RULES) -> RoomDraft:
    """Return the draft with the events that `command` causes and the room after them."""
    hits = command.hits if isinstance(command, _BRINGS_HITS) else None
    draft = RoomDraft(room, now, rules, hits)
    if command.once and command.once in room.calls.get(command.caller, {}):
        return draft
    HANDLERS[type(command)](draft, command)
    board_commands.conclude(draft)
    if isinstance(command, _MOVES_AGENTS) and draft.has_sessions:
        react(draft)
    orchestrator.wake(draft)
    if command.once:
        _record_call(draft, command.caller, command.once, _answer(draft.events))
    return draft


def _answer(events: list[KnownEvent]) -> str:
    """Return the ids of what a call began, pressed or ended, to give the same answer to a repeated call."""
    runs = [event.run for event in events if isinstance(event, RunStarted)]
    changes = [event for event in events if isinstance(event, ModeChanged)]
    begun = [event.session_id for event in changes if event.change in (Change.STARTED, Change.CONTINUED)]
    pressed = [event.id for event in events if isinstance(event, ControlSent)]
    ended = [event.session_id for event in changes if event.change is Change.ENDED]
    return ",".join(runs or begun or ended or pressed)


def _record_call(draft: RoomDraft, caller: AgentId, key: str, answer: str) -> None:
    draft.emit(CallRecorded(*draft.header(caller, SYSTEM, f"call {key}"), key=key, answer=answer))


def _send(draft: RoomDraft, command: Send) -> None:
    if is_allstop(draft.room, command.sender, command.text):
        allstop(draft, command)
        return
    send.send(draft, command)
    if draft.events:  # else it was sent before
        replies.handle_working(draft, command)


C = TypeVar("C", bound=Command)
Handler = Callable[[RoomDraft, Command], None]


def _row(kind: type[C], handler: Callable[[RoomDraft, C], None]) -> tuple[type[Command], Handler]:
    """Return a row of the table; mypy checks that the handler takes commands of this kind."""
    return kind, handler  # type: ignore[return-value]  # the table looks a handler up by the kind it takes


#: Which function handles which command.
HANDLERS: Final[dict[type[Command], Handler]] = dict(
    (
        _row(Send, _send),
        _row(PostReply, replies.handle_reply),
        _row(AnswerQuery, agent_commands.answer_query),
        _row(ReportDelivery, send.report),
        _row(CancelMessage, send.cancel),
        _row(ReleaseMessage, send.release),
        _row(RedactMessage, send.redact),
        _row(Prune, send.prune),
        _row(Join, membership.join),
        _row(Rejoin, membership.come_back),
        _row(Leave, membership.leave),
        _row(Remove, membership.remove),
        _row(SetState, membership.set_state),
        _row(ControlAgent, membership.control),
        _row(Notice, lambda draft, command: draft.notice(command.target, command.words)),
        _row(
            RecordCall,
            lambda draft, command: _record_call(draft, command.caller, command.key, command.answer),
        ),
        _row(SetMode, session_start.set_mode),
        _row(Collaborate, session_start.collaborate),
        _row(NextTurn, steering.next_turn),
        _row(ExtendTurn, steering.keep_turn),
        _row(CastVote, steering.vote),
        _row(HandOffTurn, steering.hand_over),
        _row(Stop, steering.stop),
        _row(Steer, steering.steer),
        _row(SayInRun, run_commands.say),
        _row(PrepareRun, run_commands.prepare),
        _row(CheckRun, run_commands.check),
        _row(DeliverRun, run_commands.deliver),
        _row(ActOnRun, run_commands.act),
        _row(WriteNote, board_commands.write),
        _row(Summarise, board_commands.summarise),
        _row(SetBoardProvider, board_commands.keep_notes),
        _row(CompactBoard, board_commands.compact),
        _row(Tick, lambda draft, _: timers.tick(draft)),
    )
)
