"""Track the user's own messages until they are delivered or fail, reporting each change once."""

from dataclasses import dataclass, field
from typing import Final

from csp.human.message_text import broken_at_words
from csp.human.safe_text import one_line, visible
from csp.human.theme import Theme
from csp.protocol import catalogue
from csp.protocol.enums import PENDING
from csp.protocol.enums import DeliveryState as S
from csp.protocol.events import NoticePosted
from csp.protocol.notices import OF_DELIVERIES

#: The recipients of a message finish within moments of each other, so they share one line.
GATHER_S: Final = 0.25
#: A state that lasts no longer than this is not worth a line.
STANDS_S: Final = 0.7
_REASON: Final = 200
_FINAL: Final = frozenset(set(S) - PENDING)
_SOON: Final = _FINAL - {S.SUBMITTED}

_ENDS: Final = {S.FAILED: "", S.WITHDRAWN: "withdrawn", S.EXPIRED: "expired"}


@dataclass(slots=True)
class _Step:
    """A message's state for one recipient, with its start; `told` is the state last shown to the user."""

    state: S | None = None
    reason: str = ""
    since: float = 0.0
    told: tuple[S, str] | None = None

    @property
    def is_final(self) -> bool:
        return self.state in _FINAL

    @property
    def is_news(self) -> bool:
        if self.state not in _FINAL | {S.HELD}:
            return False
        return self.told != (self.state, self.reason)

    def has_stood(self, now: float) -> bool:
        return now - self.since >= (GATHER_S if self.state in _SOON else STANDS_S)


@dataclass(slots=True)
class _Own:
    """A message that was sent, or a button that was pressed."""

    label: str
    since: float
    steps: dict[str, _Step] = field(default_factory=dict)
    is_accepted: bool = False
    #: Whether only a failure is reported.
    is_quiet: bool = False
    was_asked: bool = False

    @property
    def is_over(self) -> bool:
        return self.is_accepted and all(step.is_final and not step.is_news for step in self.steps.values())


class DeliveryTicks:
    """The user's messages in transit."""

    def __init__(self, look: Theme) -> None:
        self._look = look
        self._own: dict[str, _Own] = {}

    def expect(self, message: str, now: float, label: str = "") -> None:
        """Start tracking a message."""
        self._own[message] = _Own(label=label, since=now)

    def keep_quiet(self, message: str) -> None:
        """Report nothing about a message except a failure."""
        if message in self._own:
            self._own[message].is_quiet = True

    def is_own(self, message: str) -> bool:
        """Return whether a message is being tracked."""
        return message in self._own

    def tells(self, notice: NoticePosted) -> bool:
        """Return whether a notice only repeats what a message's tick will report."""
        return notice.code in OF_DELIVERIES and notice.params.get("message") in self._own

    def forget(self, message: str) -> None:
        """Stop tracking a message."""
        self._own.pop(message, None)

    def accept(self, message: str, seq: int, recipients: tuple[str, ...], now: float) -> None:
        """Record that the room has accepted a message for these recipients."""
        own = self._own.get(message)
        if own is None or own.is_accepted:
            return
        own.is_accepted, own.since = True, now
        own.label = own.label or f"#{seq}"
        for agent in recipients:
            own.steps.setdefault(agent, _Step(since=now))

    def move(self, message: str, agent: str, state: S, reason: str, now: float) -> None:
        """Record a message's delivery state for one recipient."""
        own = self._own.get(message)
        if own is None:
            return
        step = own.steps.setdefault(agent, _Step(since=now))
        if (step.state, step.reason) != (state, reason):
            step.state, step.reason, step.since = state, reason, now

    def silent(self, now: float) -> list[str]:
        """Return, once each, the messages without news from a recipient for a while."""
        found = [
            message
            for message, own in self._own.items()
            if own.is_accepted
            and not own.was_asked
            and now - own.since >= STANDS_S
            and any(step.state in (None, S.QUEUED) for step in own.steps.values())
        ]
        for message in found:
            self._own[message].was_asked = True
        return found

    def due(self, now: float) -> list[str]:
        """Return the lines that are due."""
        lines = [line for own in self._own.values() if (line := self._line(own, now))]
        for message in [message for message, own in self._own.items() if own.is_over]:
            del self._own[message]
        return lines

    @property
    def waiting(self) -> int:
        """The number of messages in transit."""
        return len(self._own)

    # --- one line --------------------------------------------------------------------------------

    def _line(self, own: _Own, now: float) -> str:
        news = {agent: step for agent, step in own.steps.items() if step.is_news}
        is_complete = own.is_accepted and all(step.state in _SOON for step in own.steps.values())
        if not own.is_accepted or not any(is_complete or step.has_stood(now) for step in news.values()):
            return ""
        ready = {agent: step for agent, step in news.items() if step.is_final or step.has_stood(now)}
        for step in ready.values():
            step.told = (step.state or S.QUEUED, step.reason)
        if own.is_quiet:
            ready = {agent: step for agent, step in ready.items() if step.state in _ENDS}
            if not ready:
                return ""
        told = f" {self._look.signs.dot} ".join(self._parts(ready))
        return broken_at_words(
            f"  {self._look.faint(visible(own.label))} {told}", self._look.columns(), further=4
        )

    def _parts(self, ready: dict[str, _Step]) -> list[str]:
        signs = self._look.signs
        done = [agent for agent, step in ready.items() if step.state is S.CONFIRMED]
        sent = [agent for agent, step in ready.items() if step.state is S.SUBMITTED]
        parts = [f"{signs.done} {self._names(done)}"] if done else []
        parts += [f"{signs.sent} {self._names(sent)} (unconfirmed)"] if sent else []
        held: dict[str, list[str]] = {}
        for agent, step in ready.items():
            if step.state is S.HELD:
                held.setdefault(why_held(step.reason, agent), []).append(agent)
        parts += [f"held for {self._names(agents)}: {why}" for why, agents in held.items()]
        ended = {agent: step for agent, step in ready.items() if step.state in _ENDS}
        # A person who has cancelled a message is not alarmed by it.
        cancelled = [agent for agent, step in ended.items() if step.state is S.WITHDRAWN and not step.reason]
        if cancelled:
            is_whole = len(cancelled) == len(ready)
            parts.append("cancelled" if is_whole else f"cancelled for {self._names(cancelled)}")
        return parts + [self._lost(agent, step) for agent, step in ended.items() if agent not in cancelled]

    def _lost(self, agent: str, step: _Step) -> str:
        ending = _ENDS[step.state or S.FAILED]
        reason = visible(one_line(step.reason, _REASON))
        said = ": ".join(part for part in (ending, reason) if part) or "no reason was given"
        return f"{self._look.alert(self._look.signs.failed)} {self._look.name(agent)}: {said}"

    def _names(self, agents: list[str]) -> str:
        return ", ".join(self._look.name(agent) for agent in agents)


def why_held(reason: str, agent: str) -> str:
    """Return why a message is waiting and how the wait can end."""
    known = catalogue.why_held(reason)
    if known is None:
        return visible(one_line(reason, _REASON)) or "it waits"
    return "; ".join(filter(None, (known.text, known.remedy.format(agent=agent))))
