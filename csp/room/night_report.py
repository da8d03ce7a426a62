"""Summarise the events of a time in which nobody watched the room."""

from collections import Counter
from collections.abc import Iterable
from typing import Final, assert_never

import msgspec

from csp.protocol import events
from csp.protocol.attention import AttentionItem, AttentionLevel
from csp.protocol.enums import AgentId, SessionId
from csp.protocol.report import (
    ReportAgent,
    ReportCommits,
    ReportFailure,
    ReportSession,
    ReportTests,
    ReportView,
    ReportWait,
)
from csp.protocol.session_parts import Change, Price, Setup, Status, TurnState, WaitKind
from csp.room.sessions.session_state import OPEN, Ledger, priced, spend
from csp.room.sessions.session_views import spent_view

#: A text of an agent's screen or CLI may be long.
MAX_REASON: Final = 120
_Key = tuple[SessionId, AgentId]


class _Agent(msgspec.Struct):
    turns: int = 0
    replies: int = 0
    cancelled: int = 0
    failed: Counter[str] = msgspec.field(default_factory=Counter)


class NightReport:
    """Collects the events from `since` on, of one session or of all.

    Events before `since` must be given too, as far as they are known: they tell what was going on then.
    """

    def __init__(self, since: float, session: str | None = None) -> None:
        self._since = since
        self._session = session
        self._sessions: dict[SessionId, ReportSession] = {}
        self._prices: dict[SessionId, dict[AgentId, Price]] = {}
        self._agents: dict[AgentId, _Agent] = {}
        #: The turns that were asked for and are open, and the waits that last.
        self._open: set[_Key] = set()
        self._waiting: dict[_Key, ReportWait] = {}
        self._waits: list[ReportWait] = []
        self._tests: dict[str, ReportTests] = {}
        self._spent: Ledger = ()
        self._slept_s = 0.0

    def add_all(self, journal: Iterable[events.AnyEvent]) -> None:
        """Add events in the order of the journal."""
        for event in journal:
            session = getattr(event, "session_id", None)
            if self._session in (None, session):
                self._add(event)

    def _add(self, event: events.AnyEvent) -> None:
        is_new = event.ts >= self._since
        match event:
            case events.ModeChanged():
                self._mode_changed(event, is_new=is_new)
            case events.TurnSignal() if event.session_id is not None:
                self._asked((event.session_id, event.target), event.ts, is_new=is_new)
            case events.TurnMoved():
                self._moved(event, is_new=is_new)
            case events.RunChecked() if is_new and event.update.tests is not None:
                tests = event.update.tests
                claim = " (reported by the builder)" if tests.claimed else ""
                words = "passed" if tests.passed else "timed out" if tests.timed_out else "failed"
                self._tests[event.run] = ReportTests(
                    run=event.run,
                    passed=tests.passed,
                    summary=f"{tests.command}: {words}{claim}",
                    at=event.ts,
                )
            case events.AgentResponse() | events.Activity() | events.LateReply() if is_new:
                if event.usage is not None:
                    prices = self._prices.get(event.session_id, {}) if event.session_id else {}
                    usage = priced(event.usage, prices.get(event.sender))
                    self._spent = spend(self._spent, event.sender, usage)
            case _:
                pass

    def _mode_changed(self, event: events.ModeChanged, *, is_new: bool) -> None:
        session = event.session_id
        key = (session, AgentId(""))
        match event.change:
            case Change.STARTED | Change.CONTINUED if event.setup is not None:
                self._started(event, event.setup)
            case Change.PAUSED:
                kind, detail = (WaitKind.RESUME, str(event.reason or "paused"))
                self._waiting[key] = _wait(key, kind, detail, event.ts)
            case Change.RESUMED:
                self._end_wait(key, event.ts)
            case Change.SLEPT:
                self._slept_s += (event.minutes or 0.0) * 60 if is_new else 0.0
            case Change.ENDED:
                known = self._sessions.get(session)
                if known is not None:
                    self._sessions[session] = msgspec.structs.replace(
                        known, status=Status.ENDED, reason=event.reason, ended_at=event.ts
                    )
                for waiting in [one for one in self._waiting if one[0] == session]:
                    self._end_wait(waiting, event.ts)
            case Change.STARTED | Change.CONTINUED | Change.PHASE | Change.EXTENDED | Change.KICKED:
                pass
            case Change.REMINDED | Change.WARNED | Change.SETTLED:
                pass
            case _:
                assert_never(event.change)

    def _started(self, event: events.ModeChanged, setup: Setup) -> None:
        self._prices[event.session_id] = setup.prices
        self._sessions[event.session_id] = ReportSession(
            id=event.session_id,
            mode=setup.mode,
            topic=setup.topic,
            status=Status.RUNNING,
            reason=None,
            started_at=event.ts,
            ended_at=None,
        )

    def _agent(self, agent: AgentId) -> _Agent:
        return self._agents.setdefault(agent, _Agent())

    def _asked(self, key: _Key, now: float, *, is_new: bool) -> None:
        self._end_wait(key, now)
        # A request that is repeated for the same turn is one turn.
        if is_new and key not in self._open:
            self._agent(key[1]).turns += 1
        self._open.add(key)

    def _moved(self, event: events.TurnMoved, *, is_new: bool) -> None:
        key = (event.session_id, event.agent)
        wait = event.wait
        if wait is None and event.state is TurnState.BLOCKED:
            kind, detail = WaitKind.PERSON, ""
        elif wait is not None:
            kind, detail = wait.kind, wait.detail
        else:
            if not event.warned and event.handoff is None:
                self._end_wait(key, event.ts)
            self._closed(key, event, is_new=is_new)
            return
        known = self._waiting.get(key)
        if known is None or known.kind is not kind:
            self._end_wait(key, event.ts)
            self._waiting[key] = _wait(key, kind, detail, event.ts)
        if event.state is TurnState.WAITING and key not in self._open:
            self._asked_later(key, is_new=is_new)

    def _asked_later(self, key: _Key, *, is_new: bool) -> None:
        """Count a turn whose agent could not be asked at once."""
        self._agent(key[1]).turns += is_new
        self._open.add(key)

    def _closed(self, key: _Key, event: events.TurnMoved, *, is_new: bool) -> None:
        if event.state in OPEN:
            return
        was_asked = key in self._open
        self._open.discard(key)
        if not is_new:
            return
        agent = self._agent(key[1])
        agent.turns += not was_asked
        if event.state is TurnState.REPLIED:
            agent.replies += 1
        elif event.state is TurnState.CANCELLED:
            agent.cancelled += 1
        else:
            agent.failed[(event.reason or str(event.state))[:MAX_REASON]] += 1

    def _end_wait(self, key: _Key, now: float) -> None:
        wait = self._waiting.pop(key, None)
        if wait is not None and now >= self._since:
            self._waits.append(msgspec.structs.replace(wait, ended=now))

    def view(
        self,
        now: float,
        items: tuple[AttentionItem, ...] = (),
        commits: tuple[ReportCommits, ...] = (),
    ) -> ReportView:
        """Return the report with the room's open items and the commits of that time."""
        waits = sorted([*self._waits, *self._waiting.values()], key=lambda wait: wait.since)
        asking = [item for item in items if item.level is AttentionLevel.ACTION]
        lines = [answer.line for item in asking[:1] for answer in item.answers[:1]]
        return ReportView(
            since=self._since,
            until=now,
            sessions=tuple(
                one for one in self._sessions.values() if one.ended_at is None or one.ended_at >= self._since
            ),
            agents=tuple(
                ReportAgent(
                    agent=agent,
                    turns=one.turns,
                    replies=one.replies,
                    cancelled=one.cancelled,
                    failed=tuple(ReportFailure(reason=why, count=n) for why, n in one.failed.most_common()),
                )
                for agent, one in self._agents.items()
            ),
            waits=tuple(waits),
            slept_s=self._slept_s,
            commits=commits,
            tests=tuple(self._tests.values()),
            spent=spent_view(self._spent),
            needs=tuple(item.title for item in asking),
            next=next(iter(lines), ""),
        )


def _wait(key: _Key, kind: WaitKind, detail: str, since: float) -> ReportWait:
    return ReportWait(session=key[0], agent=key[1], kind=kind, detail=detail, since=since, ended=None)
