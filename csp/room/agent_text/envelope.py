"""The form in which an agent answers in its turn: what it says, to whom it hands over, whether it is done.

An API agent answers in JSON. A CLI agent may too, or write its lines; whatever it is, nothing here raises.
"""

from dataclasses import dataclass
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from csp.protocol.requests import Handoff
from csp.room.agent_text.code_lines import fenced_objects
from csp.room.agent_text.grammar import Finish, HandOver, Spoken


class _Shape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    message: Annotated[str, Meta(min_length=1)]
    handoff: "_Handoff | None" = None
    final: bool = False


class _Handoff(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    to: Annotated[str, Meta(min_length=1)]
    task: Annotated[str, Meta(min_length=1, max_length=500)]


_decoder: Final = msgspec.json.Decoder(_Shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What a reply says; `malformed` where it was meant as an envelope, or had to be one, but is none."""

    message: str
    handoff: Handoff | None = None
    final: bool = False
    malformed: bool = False

    @classmethod
    def parse(cls, text: str, commands: tuple[Spoken, ...] = (), *, is_required: bool = False) -> "Envelope":
        """Read a reply; `commands` are the lines in it that command something; never raise."""
        whole = text.strip()
        fenced = fenced_objects(text)
        is_meant = whole.startswith("{") and whole.endswith("}")
        is_fence = len(fenced) == 1 and whole.startswith("```") and whole.endswith("```")
        shape = _shape(whole if is_meant else fenced[0] if len(fenced) == 1 else "")
        if shape is None:
            is_malformed = is_required or is_meant or is_fence
            # What the lines of a CLI agent say; who is done hands nothing over.
            is_final = any(isinstance(spoken, Finish) for spoken in commands)
            named = [spoken for spoken in commands if isinstance(spoken, HandOver)]
            to = Handoff(to=named[-1].to, task=named[-1].task) if named and not is_final else None
            return cls(message=text, handoff=to, final=is_final, malformed=is_malformed)
        handoff = None if shape.final else shape.handoff
        return cls(
            message=shape.message,
            handoff=Handoff(to=handoff.to.lower(), task=handoff.task) if handoff else None,
            final=shape.final,
        )


def _shape(text: str) -> _Shape | None:
    try:
        return _decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
