"""Decide which events a command causes, or refuse it with a reason.

`decide` reads the room but never changes it; a refused command leaves no trace.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from csp.protocol import events
from csp.protocol.enums import SYSTEM, AgentId
from csp.protocol.session_parts import Change
from csp.room import agent_commands, approvals, board_commands, commands, membership, messages, orchestrator
from csp.room.agent_commands import allstop, is_allstop
from csp.room.commands import DEFAULT_RULES, RoomRules
from csp.room.room_draft import RoomDraft
from csp.room.room_state import Room
from csp.room.runs import run_commands
from csp.room.sessions import replies, session_start, steering
from csp.room.sessions.agent_changes import react

#: After these commands, sessions react to changes in their agents.
_MOVES_AGENTS: Final = (
    commands.ReportDelivery,
    commands.Send,
    commands.SetState,
    commands.CancelMessage,
    commands.Join,
    commands.Rejoin,
    commands.ControlAgent,
    commands.Leave,
    commands.Remove,
    commands.RedactMessage,
)
#: Commands that can start turns, for which the whiteboard was searched.
_BRINGS_HITS: Final = (commands.PostReply, commands.Collaborate, commands.Tick)


def decide(
    room: Room, command: commands.AnyCommand, now: float, rules: RoomRules = DEFAULT_RULES
) -> list[events.KnownEvent]:
    """Return the events that `command` causes, possibly none; raise an error if it is refused."""
    return draft_of(room, command, now, rules).events


def draft_of(
    room: Room, command: commands.AnyCommand, now: float, rules: RoomRules = DEFAULT_RULES
) -> RoomDraft:
    """Return the draft with the events that `command` causes and the resulting room."""
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


def _answer(caused: list[events.KnownEvent]) -> str:
    """Return the ids of everything a call started, pressed or ended, as the answer to a repeated call."""
    runs = [event.run for event in caused if isinstance(event, events.RunStarted)]
    changes = [event for event in caused if isinstance(event, events.ModeChanged)]
    begun = [event.session_id for event in changes if event.change in (Change.STARTED, Change.CONTINUED)]
    pressed = [event.id for event in caused if isinstance(event, events.ControlSent)]
    ended = [event.session_id for event in changes if event.change is Change.ENDED]
    return ",".join(runs or begun or ended or pressed)


def _record_call(draft: RoomDraft, caller: AgentId, key: str, answer: str) -> None:
    draft.emit(events.CallRecorded(*draft.header(caller, SYSTEM, f"call {key}"), key=key, answer=answer))


def _send(draft: RoomDraft, command: commands.Send) -> None:
    if is_allstop(draft.room, command.sender, command.text):
        allstop(draft, command)
        return
    messages.send(draft, command)
    if draft.events:  # otherwise it was sent before
        replies.handle_working(draft, command)


C = TypeVar("C", bound=commands.Command)
Handler = Callable[[RoomDraft, commands.Command], None]


def _row(kind: type[C], handler: Callable[[RoomDraft, C], None]) -> tuple[type[commands.Command], Handler]:
    """Return a row of the table; mypy checks that the handler accepts commands of this kind."""
    return kind, handler  # type: ignore[return-value]  # the table finds a handler by the kind it accepts


#: The handler of each command.
HANDLERS: Final[dict[type[commands.Command], Handler]] = dict(
    (
        _row(commands.Send, _send),
        _row(commands.PostReply, replies.handle_reply),
        _row(commands.AnswerQuery, agent_commands.answer_query),
        _row(commands.ReportDelivery, messages.report),
        _row(commands.CancelMessage, messages.cancel),
        _row(commands.ReleaseMessage, messages.release),
        _row(commands.RedactMessage, messages.redact),
        _row(commands.Prune, messages.prune),
        _row(commands.Join, membership.join),
        _row(commands.Rejoin, membership.come_back),
        _row(commands.Leave, membership.leave),
        _row(commands.Remove, membership.remove),
        _row(commands.SetState, membership.set_state),
        _row(commands.ControlAgent, membership.control),
        _row(commands.AllowCommand, approvals.allow),
        _row(commands.DisallowCommand, approvals.disallow),
        _row(commands.Notice, lambda draft, command: draft.notice(command.target, command.words)),
        _row(
            commands.RecordCall,
            lambda draft, command: _record_call(draft, command.caller, command.key, command.answer),
        ),
        _row(commands.SetMode, session_start.set_mode),
        _row(commands.Collaborate, session_start.collaborate),
        _row(commands.NextTurn, steering.next_turn),
        _row(commands.ExtendTurn, steering.keep_turn),
        _row(commands.CastVote, steering.vote),
        _row(commands.HandOffTurn, steering.hand_over),
        _row(commands.Stop, steering.stop),
        _row(commands.Steer, steering.steer),
        _row(commands.SayInRun, run_commands.say),
        _row(commands.PrepareRun, run_commands.prepare),
        _row(commands.CheckRun, run_commands.check),
        _row(commands.DeliverRun, run_commands.deliver),
        _row(commands.ActOnRun, run_commands.act),
        _row(commands.WriteNote, board_commands.write),
        _row(commands.Summarise, board_commands.summarise),
        _row(commands.SetBoardProvider, board_commands.keep_notes),
        _row(commands.CompactBoard, board_commands.compact),
        _row(commands.Tick, lambda draft, _: steering.tick(draft)),
        _row(commands.Slept, steering.note_sleep),
    )
)
