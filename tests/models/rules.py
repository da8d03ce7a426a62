"""What the scripted model answers, as data."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

CHUNK_CHARS: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One text block, sent whole or in chunks with a pause before each."""

    text: str
    chunk_chars: int = 0
    delay_s: float = 0.0

    def chunks(self) -> list[str]:
        size = self.chunk_chars or max(1, len(self.text))
        return [self.text[at : at + size] for at in range(0, len(self.text), size)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """A call of the CLI's own shell tool, in its own schema; `escalate` makes Codex ask."""

    command: str
    escalate: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a tool by its name at that CLI; Codex has some of its tools in a namespace."""

    name: str
    namespace: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Nothing for a while, in the middle of the stream; at the start: before the first byte."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Endless:
    """A stream that never ends by itself; the client may abort it."""

    text: str = "tick "
    delay_s: float = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """An error answer: before any other part a status, after one an error inside the stream.

    kind: overloaded, server, rate, limit, auth, invalid; the body is the provider's own for that kind.
    `after_s` comes with it as Retry-After; `text` takes the place of what the provider would say.
    """

    kind: str = "server"
    until: float | None = None
    after_s: float | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The end of the connection, in the middle of the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """The tokens that one answer says it took: input read from a cache, written to one, neither; output."""

    cached: int = 0
    written: int = 0
    fresh: int = 0
    output: int = 0

    @property
    def input(self) -> int:
        return self.cached + self.written + self.fresh

    @property
    def new(self) -> int:
        return self.written + self.fresh + self.output


#: A call of a CLI in the midst of its work; 13 of them are a turn of 26,500 new tokens.
REALISTIC: Final = Used(cached=38_000, written=1_500, fresh=338, output=200)

Part: TypeAlias = Text | Shell | Call | Pause | Endless | Fail | Cut
Match: TypeAlias = str | Callable[[str], object]


@dataclass(slots=True, kw_only=True)
class Rule:
    """Parts to answer with when the last user text matches; calls of tools end a step.

    The next step is sent with the results of those calls. `times`: how many prompts it serves.
    `kind` picks the requests it is for: main, side, compact or sub. `used` is what each answer says it took;
    without it that is guessed by the length of the texts.
    """

    match: Match = ""
    reply: Sequence[Part] = ()
    client: str = ""
    kind: str = "main"
    times: int | None = None
    used: Used | None = None

    def fits(self, client: str, kind: str, text: str) -> bool:
        if self.times == 0 or self.client not in ("", client) or self.kind != kind:
            return False
        if isinstance(self.match, str):
            return re.search(self.match, text, re.DOTALL) is not None
        return bool(self.match(text))

    def step(self, number: int) -> list[Part]:
        """Return the parts of the step after that many rounds of tools; none are left: no parts."""
        steps: list[list[Part]] = [[]]
        for part in self.reply:
            if steps[-1] and isinstance(steps[-1][-1], Shell | Call) and not isinstance(part, Shell | Call):
                steps.append([])
            steps[-1].append(part)
        return steps[number] if number < len(steps) else []


def say(match: Match, *texts: str, client: str = "") -> Rule:
    """Answer with these texts, each a block of its own, at once."""
    return Rule(match=match, reply=[Text(text=text) for text in texts], client=client)


def slow(text: str, seconds: float) -> Text:
    """Spread a text evenly over that many seconds."""
    count = max(1, -(-len(text) // CHUNK_CHARS))
    return Text(text=text, chunk_chars=CHUNK_CHARS, delay_s=seconds / count)
