"""Which events a command causes, or why it is refused.

`decide` looks at the room but never changes it; a refused command leaves no trace.
"""

from typing import assert_never

from csp.core import membership, messages, speech
from csp.core.batch import Batch
from csp.core.commands import (
    Answer,
    AnyCommand,
    Cancel,
    Continue,
    Control,
    Join,
    Leave,
    Notice,
    Prune,
    Redact,
    Remove,
    Report,
    Return,
    Send,
    SetState,
    Tell,
    Tick,
)
from csp.core.room import Room
from csp.events import KnownEvent


def decide(room: Room, command: AnyCommand, now: float) -> list[KnownEvent]:
    """Return the events that `command` causes; none if it changes nothing; raise if it is refused."""
    batch = Batch(room, now)
    match command:
        case Send():
            messages.send(room, command, batch)
        case Answer():
            speech.answer(room, command, batch)
        case Tell():
            speech.tell(room, command, batch)
        case Report():
            messages.report(room, command, batch)
        case SetState():
            membership.set_state(room, command, batch)
        case Join():
            membership.join(room, command, batch)
        case Return():
            membership.come_back(room, command, batch)
        case Leave():
            membership.leave(room, command, batch)
        case Remove():
            membership.remove(room, command, batch)
        case Control():
            membership.control(room, command, batch)
        case Cancel():
            messages.cancel(room, command, batch)
        case Continue():
            messages.release(room, command, batch)
        case Redact():
            messages.redact(room, command, batch)
        case Prune():
            messages.prune(room, command, batch)
        case Notice():
            batch.notice(command.target, command.text)
        case Tick():
            messages.tick(room, batch)
        case _:
            assert_never(command)
    return batch.events
