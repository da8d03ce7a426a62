"""What the model server saw: one record for each request."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request, understood.

    conversation: all texts of the user in the request; texts: those since the last answer; governing: the
    last one; rounds: how many rounds of tool calls followed it; results: what the tools returned since the
    last answer; tokens: a guess at its length.
    """

    dialect: str
    kind: str
    conversation: tuple[str, ...]
    texts: tuple[str, ...]
    governing: str
    rounds: int
    results: tuple[str, ...]
    tools: tuple[str, ...]
    is_stream: bool
    tokens: int


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One request with its answer; `ended` is open, done, failed or aborted (by the client).

    prompts: the user's texts that came with this request for the first time.
    """

    number: int
    client: str
    ask: Ask
    body: dict[str, Any]
    at: float
    path: str
    headers: dict[str, str]
    prompts: tuple[str, ...] = ()
    is_retry: bool = False
    blocks: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    ended: str = "open"
    status: int = 200
    is_cut: bool = False
    ended_at: float = 0.0

    @property
    def reply(self) -> str:
        """The text blocks as one text; Gemini's language has no blocks, so there they run together."""
        return ("" if self.ask.dialect == "gemini" else "\n\n").join(self.blocks)


def is_retry(ask: Ask, before: Exchange | None) -> bool:
    """Tell whether a request only repeats the one before it, which failed."""
    return (
        before is not None
        and before.ended == "failed"
        and ask.conversation == before.ask.conversation
        and ask.rounds == before.ask.rounds
    )


def new_texts(ask: Ask, before: Exchange | None) -> tuple[str, ...]:
    """Return the texts that are new: a failed turn's prompt is sent again with the next one."""
    if before is None or not ask.texts:
        return ask.texts
    if is_retry(ask, before):
        return ()
    old, new = before.ask.conversation, ask.conversation
    common = next(
        (at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new))
    )
    # A conversation that did not grow was cleared or cut: its last text is new, whatever it says.
    common = min(common, len(new) - 1) if len(new) <= len(old) else common
    first = len(new) - len(ask.texts)
    return ask.texts[max(0, common - first) :]
