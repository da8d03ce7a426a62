"""How far each message of the room has come on its way into the CLI.

A message that is being typed is `current`, with all that happens to it. Each one before it is kept as a
`SentPrompt`, by the tag in its prompt, by which the CLI's record and its replies name it.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

import msgspec

from csp.protocol.enums import DeliverKind
from csp.protocol.responses import Deliver
from csp.terminal.generic_screen import PasteLocator
from csp.terminal.prompt import Prompt, tag_of
from csp.terminal.submit_machine import SubmitMachine

KEPT: Final = 500


class SentPrompt(msgspec.Struct, frozen=True, array_like=True):
    """A prompt that was typed in: which message or turn of the room it is, and how far it has come."""

    id: str
    turn: str | None = None
    #: Whether the room knows it as submitted, without a proof.
    is_unproven: bool = False
    #: Whether the CLI itself said that it has the prompt.
    is_proven: bool = False


class Injection(msgspec.Struct, kw_only=True):
    """One message on its way into the composer."""

    item: Deliver
    prompt: Prompt
    typing: SubmitMachine
    begun: float
    #: The report that it will be typed now.
    announced: "asyncio.Task[None] | None" = None
    reports: "list[asyncio.Task[None]]" = []
    #: The last keys: whether the relay has written them, when they were sent, when the CLI had read them.
    written: "asyncio.Future[bool] | None" = None
    pressed_at: float = 0.0
    written_at: float | None = None
    #: Whether the relay did not write them, since a person's keys came first.
    is_refused: bool = False
    pasted_at: float = 0.0
    #: When the paste should be on the screen.
    see_at: float | None = None
    #: Follows the prompt on a screen whose composer no rule describes.
    landing: PasteLocator | None = None
    clears: int = 0
    #: Whether an answer was stopped for this urgent message.
    was_interrupted: bool = False
    #: Whether the room has ended the message.
    is_gone: bool = False


class MessageProgress:
    """The message that is being typed, and those that were."""

    def __init__(self, sent: Mapping[str, SentPrompt] | None = None) -> None:
        self.sent = dict(sent or {})
        self.current: Injection | None = None
        #: A message that a brain before this one had begun to paste into the CLI that still runs.
        self.left_standing: str | None = None

    @property
    def typing(self) -> tuple[str, str] | None:
        """The message that is being typed with its phase, for the brain after this one."""
        job = self.current
        return None if job is None else (job.item.id, job.typing.phase.name)

    @property
    def is_touching(self) -> bool:
        """Tell whether something of ours may stand in the composer."""
        return self.current is not None and self.current.typing.has_touched

    def is_at(self, turn: str) -> bool:
        """Tell whether the prompt of a turn is on its way into the composer."""
        return self.current is not None and self.current.item.turn == turn

    def remember(self, item: Deliver) -> None:
        """Note which message a prompt is, before it is pasted."""
        turn = item.turn if item.kind is DeliverKind.TURN else None
        found = self.sent.get(tag_of(item), SentPrompt(""))
        self._keep(tag_of(item), msgspec.structs.replace(found, id=item.id, turn=turn))

    def find(self, tag: str | None) -> SentPrompt | None:
        """Return the message of a prompt; None for one that is not a message, such as the initial prompt."""
        found = None if tag is None else self.sent.get(tag)
        return found if found is not None and found.id else None

    def note_submitted(self, tag: str) -> None:
        """Note that the room was told that a prompt is submitted, without a proof."""
        found = self.sent.get(tag, SentPrompt(""))
        self._keep(tag, msgspec.structs.replace(found, is_unproven=True))

    def prove(self, tag: str) -> SentPrompt | None:
        """Note that the CLI itself said it has a prompt; return it if the room knows it as unproven."""
        found = self.sent.get(tag, SentPrompt(""))
        self._keep(tag, msgspec.structs.replace(found, is_unproven=False, is_proven=True))
        return found if found.is_unproven else None

    def is_proven(self, tag: str) -> bool:
        """Tell whether the CLI itself said that it has a prompt."""
        found = self.sent.get(tag)
        return found is not None and found.is_proven

    def _keep(self, tag: str, prompt: SentPrompt) -> None:
        self.sent[tag] = prompt
        if len(self.sent) > KEPT:
            del self.sent[next(iter(self.sent))]
