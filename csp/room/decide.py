"""Which events a command causes, or why it is refused.

`decide` looks at the room but never changes it; a refused command leaves no trace.
"""

from typing import Final, assert_never

from csp.protocol.enums import SYSTEM, AgentId
from csp.protocol.events import CallRecorded, ControlSent, KnownEvent, ModeChanged, RunStarted
from csp.protocol.session_parts import Change
from csp.room import membership, timers
from csp.room.agent_text import agent_commands
from csp.room.agent_text.allstop import allstop, is_allstop
from csp.room.board import board_commands
from csp.room.commands import (
    ActOnRun,
    AnswerQuery,
    AnyCommand,
    BoardCommand,
    CancelMessage,
    CastVote,
    CheckRun,
    Collaborate,
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
    RunCommand,
    SayInRun,
    Send,
    SessionCommand,
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
from csp.room.orchestrator import wake
from csp.room.room_draft import RoomDraft
from csp.room.room_rules import DEFAULT_RULES, RoomRules
from csp.room.room_state import Room
from csp.room.runs import run_commands
from csp.room.sessions import collaborations, replies, session_start, steering, turn_commands
from csp.room.sessions.session_reactions import react

#: After these the sessions look what has happened to their agents.
_MOVES_AGENTS: Final = (ReportDelivery, Send, SetState, CancelMessage, Leave, Remove, RedactMessage)
#: These lead to asks, for which the whiteboard was searched.
_BRINGS_HITS: Final = (PostReply, Collaborate, Tick)


def decide(room: Room, command: AnyCommand, now: float, rules: RoomRules = DEFAULT_RULES) -> list[KnownEvent]:
    """Return the events that `command` causes; none if it changes nothing; raise if it is refused."""
    if command.once and command.once in room.calls.get(command.caller, {}):
        return []
    batch = RoomDraft(room, now, command.hits if isinstance(command, _BRINGS_HITS) else None)
    _decide(room, command, batch, rules)
    board_commands.conclude(room, batch, rules)
    if isinstance(command, _MOVES_AGENTS) and batch.has_sessions:
        react(room, batch, rules)
    wake.wake(room, batch, rules)
    if command.once:
        _note_call(batch, command.caller, command.once, _answer(batch.events))
    return batch.events


def _note_call(batch: RoomDraft, caller: AgentId, key: str, answer: str) -> None:
    batch.add(CallRecorded, caller, SYSTEM, f"call {key}", {"key": key, "answer": answer})


def _decide(room: Room, command: AnyCommand, batch: RoomDraft, rules: RoomRules) -> None:
    match command:
        case Send():
            _send(room, command, batch, rules)
        case PostReply():
            replies.handle_reply(room, command, batch, rules)
        case AnswerQuery():
            agent_commands.answer_query(room, command, batch)
        case ReportDelivery():
            send.report(room, command, batch)
        case SetState():
            membership.set_state(room, command, batch)
        case Join():
            membership.join(room, command, batch)
        case Rejoin():
            membership.come_back(room, command, batch)
        case Leave():
            membership.leave(room, command, batch)
        case Remove():
            membership.remove(room, command, batch)
        case ControlAgent():
            membership.control(room, command, batch)
        case RecordCall():
            _note_call(batch, command.caller, command.key, command.answer)
        case CancelMessage():
            send.cancel(room, command, batch)
        case ReleaseMessage():
            send.release(room, command, batch)
        case RedactMessage():
            send.redact(room, command, batch)
        case Prune():
            send.prune(room, command, batch)
        case Notice():
            batch.notice(command.target, command.text)
        case (
            SetMode()
            | Collaborate()
            | NextTurn()
            | ExtendTurn()
            | CastVote()
            | HandOffTurn()
            | Stop()
            | Steer()
        ):
            decide_session(room, command, batch, rules)
        case SayInRun() | PrepareRun() | CheckRun() | DeliverRun() | ActOnRun():
            decide_run(room, command, batch, rules)
        case WriteNote() | Summarise() | SetBoardProvider() | CompactBoard():
            decide_board(room, command, batch, rules)
        case Tick():
            timers.tick(room, batch, rules)
        case _:
            assert_never(command)


def _answer(events: list[KnownEvent]) -> str:
    """Return the ids by which the answer to a call can be given again: what it began, pressed or ended."""
    runs = [event.run for event in events if isinstance(event, RunStarted)]
    changes = [event for event in events if isinstance(event, ModeChanged)]
    begun = [event.session_id for event in changes if event.change in (Change.STARTED, Change.CONTINUED)]
    pressed = [event.id for event in events if isinstance(event, ControlSent)]
    ended = [event.session_id for event in changes if event.change is Change.ENDED]
    return ",".join(runs or begun or ended or pressed)


def _send(room: Room, command: Send, batch: RoomDraft, rules: RoomRules) -> None:
    if is_allstop(room, command.sender, command.text):
        allstop(room, command, batch, rules)
        return
    send.send(room, command, batch)
    if batch.events:  # else it was sent before
        replies.handle_working(room, command, batch, rules)


def decide_session(room: Room, command: SessionCommand, batch: RoomDraft, rules: RoomRules) -> None:
    """Append the events that a command about a session causes."""
    match command:
        case SetMode():
            session_start.set_mode(room, command, batch, rules)
        case Collaborate():
            collaborations.collaborate(room, command, batch, rules)
        case NextTurn():
            steering.next_turn(room, command, batch, rules)
        case ExtendTurn():
            steering.keep_turn(room, command, batch, rules)
        case CastVote():
            turn_commands.vote(room, command, batch, rules)
        case HandOffTurn():
            turn_commands.hand_over(room, command, batch, rules)
        case Stop():
            steering.stop(room, command, batch, rules)
        case Steer():
            steering.steer(room, command, batch, rules)
        case _:
            assert_never(command)


def decide_run(room: Room, command: RunCommand, batch: RoomDraft, rules: RoomRules) -> None:
    """Append the events that a command about a run causes."""
    match command:
        case SayInRun():
            run_commands.say(room, command, batch, rules)
        case PrepareRun():
            run_commands.prepare(room, command, batch, rules)
        case CheckRun():
            run_commands.check(room, command, batch, rules)
        case DeliverRun():
            run_commands.deliver(room, command, batch, rules)
        case ActOnRun():
            run_commands.act(room, command, batch, rules)
        case _:
            assert_never(command)


def decide_board(room: Room, command: BoardCommand, batch: RoomDraft, rules: RoomRules) -> None:
    """Append the events that a command about a board causes."""
    match command:
        case WriteNote():
            board_commands.write(room, command, batch, rules)
        case Summarise():
            board_commands.summarise(room, command, batch)
        case SetBoardProvider():
            board_commands.keep_notes(room, command, batch)
        case CompactBoard():
            board_commands.compact(room, command, batch)
        case _:
            assert_never(command)
