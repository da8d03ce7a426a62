"""Track the progress of each of the room's messages on its way into the CLI.

The message that is being typed is `current`, with its full state. Each earlier one is kept as a `SentPrompt`
by the tag in its prompt, which identifies it in the CLI's record and replies.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

import msgspec

from csp.protocol.enums import DeliverKind
from csp.protocol.responses import Deliver
from csp.terminal.generic_screen import PasteLocator
from csp.terminal.prompt_builder import Prompt, tag_of
from csp.terminal.returned_prompt import PastedPrompt
from csp.terminal.submit_machine import SubmitMachine

KEPT: Final = 500
#: The number of pastes that are remembered, because the CLI may put one of them back into its composer.
PASTES: Final = 20


class SentPrompt(msgspec.Struct, frozen=True, array_like=True):
    """A prompt that was typed, with its message or turn in the room and its progress."""

    id: str
    turn: str | None = None
    #: Whether the room has recorded the prompt as submitted without proof.
    is_unproven: bool = False
    #: Whether the CLI's record proves that it received the prompt.
    is_proven: bool = False


class Injection(msgspec.Struct, kw_only=True):
    """One message on its way into the composer."""

    item: Deliver
    prompt: Prompt
    typing: SubmitMachine
    begun: float
    #: The report that typing is about to begin.
    announced: "asyncio.Task[None] | None" = None
    reports: "list[asyncio.Task[None]]" = []
    #: The last keys: whether the relay has written them, and when the CLI had read them.
    written: "asyncio.Future[bool] | None" = None
    written_at: float | None = None
    #: Whether the relay refused to write them because a person's keys arrived first.
    is_refused: bool = False
    pasted_at: float = 0.0
    #: The time by which the paste should be visible on the screen.
    see_at: float | None = None
    #: The locator of the prompt on a screen whose composer no rule describes.
    landing: PasteLocator | None = None
    clears: int = 0
    #: Whether an answer was stopped for this urgent message.
    was_interrupted: bool = False
    #: Whether the room has ended the message.
    is_gone: bool = False


class MessageProgress:
    """The message that is being typed, and the earlier ones."""

    def __init__(self, sent: Mapping[str, SentPrompt] | None = None) -> None:
        self.sent = dict(sent or {})
        self.current: Injection | None = None
        #: The last pastes, by tag.
        self.pasted: dict[str, PastedPrompt] = {}
        #: A message that an earlier brain began to paste into the CLI, which is still running.
        self.left_standing: str | None = None

    @property
    def typing(self) -> tuple[str, str] | None:
        """The message that is being typed and its phase, for the next brain."""
        job = self.current
        return None if job is None else (job.item.id, job.typing.phase.name)

    @property
    def is_touching(self) -> bool:
        """Return whether the composer may contain text that we typed."""
        return self.current is not None and self.current.typing.has_touched

    def is_at(self, turn: str) -> bool:
        """Return whether a turn's prompt is being typed."""
        return self.current is not None and self.current.item.turn == turn

    def remember(self, item: Deliver) -> None:
        """Record the message of a prompt before the prompt is pasted."""
        turn = item.turn if item.kind is DeliverKind.TURN else None
        found = self.sent.get(tag_of(item), SentPrompt(""))
        self._keep(tag_of(item), msgspec.structs.replace(found, id=item.id, turn=turn))

    def note_pasted(self, prompt: Prompt, at: float) -> None:
        """Record the prompt that is being pasted, to recognise it if the CLI puts it back."""
        self.pasted.pop(prompt.tag, None)
        breaks = prompt.text.count("\n")
        self.pasted[prompt.tag] = PastedPrompt(tag=prompt.tag, line_breaks=breaks, pasted_at=at)
        if len(self.pasted) > PASTES:
            del self.pasted[next(iter(self.pasted))]

    def find(self, tag: str | None) -> SentPrompt | None:
        """Return the message of a prompt; None for a prompt without one, such as the initial prompt."""
        found = None if tag is None else self.sent.get(tag)
        return found if found is not None and found.id else None

    def note_submitted(self, tag: str) -> None:
        """Record that a prompt was reported to the room as submitted without proof."""
        found = self.sent.get(tag, SentPrompt(""))
        self._keep(tag, msgspec.structs.replace(found, is_unproven=True))

    def prove(self, tag: str) -> SentPrompt | None:
        """Record proof that the CLI received a prompt; return the prompt if the room has it as unproven."""
        found = self.sent.get(tag, SentPrompt(""))
        self._keep(tag, msgspec.structs.replace(found, is_unproven=False, is_proven=True))
        return found if found.is_unproven else None

    def is_proven(self, tag: str) -> bool:
        """Return whether there is proof that the CLI received a prompt."""
        found = self.sent.get(tag)
        return found is not None and found.is_proven

    def _keep(self, tag: str, prompt: SentPrompt) -> None:
        self.sent[tag] = prompt
        if len(self.sent) > KEPT:
            del self.sent[next(iter(self.sent))]
