"""Types for the report on what happened in a room while nobody watched (GET /report)."""

from typing import Annotated

from msgspec import Meta

from csp.protocol.enums import Id, Struct
from csp.protocol.responses import SpentView
from csp.protocol.session_parts import EndReason, Status, WaitKind


class ReportParams(Struct, frozen=True):
    """The session to report on, or the time since which to report, in seconds since 1970."""

    session: Id | None = None
    since: Annotated[float, Meta(ge=0, le=1e11)] | None = None


class ReportFailure(Struct, frozen=True, omit_defaults=False):
    """A reason why turns of an agent were not answered, with their number."""

    reason: str
    count: int


class ReportAgent(Struct, frozen=True, omit_defaults=False):
    """The turns of an agent: asked for, answered, cancelled and failed."""

    agent: str
    turns: int
    replies: int
    cancelled: int
    failed: tuple[ReportFailure, ...]


class ReportWait(Struct, frozen=True, omit_defaults=False):
    """A wait for an agent, or for a person if there is none; `ended` is None while it lasts."""

    session: str
    agent: str
    kind: WaitKind
    detail: str
    since: float
    ended: float | None


class ReportSession(Struct, frozen=True, omit_defaults=False):
    """A session that ran in the time of the report."""

    id: str
    mode: str
    topic: str
    status: Status
    reason: EndReason | None
    started_at: float
    ended_at: float | None


class ReportCommits(Struct, frozen=True, omit_defaults=False):
    """The commits in a repository, newest first; `total` may exceed the number of `subjects`."""

    directory: str
    total: int
    subjects: tuple[str, ...]


class ReportTests(Struct, frozen=True, omit_defaults=False):
    """The last test run of a review run."""

    run: str
    passed: bool
    summary: str
    at: float


class ReportView(Struct, frozen=True, omit_defaults=False):
    """The report from `since` to `until`; `needs` are the open items, `next` the answer to the first one."""

    since: float
    until: float
    sessions: tuple[ReportSession, ...]
    agents: tuple[ReportAgent, ...]
    waits: tuple[ReportWait, ...]
    slept_s: float
    commits: tuple[ReportCommits, ...]
    tests: tuple[ReportTests, ...]
    spent: tuple[SpentView, ...]
    needs: tuple[str, ...]
    next: str
