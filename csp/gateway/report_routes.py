"""The route for the report on what happened while nobody watched the room."""

import asyncio
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from csp.errors import BadInput, NotFound
from csp.fast_start.process_environment import process_environment
from csp.gateway.gateway import Gateway
from csp.gateway.route_table import Asked
from csp.journal.committed_journal import JournalView
from csp.protocol.events import AnyEvent, decode_event
from csp.protocol.report import ReportCommits, ReportParams, ReportView
from csp.review.recent_commits import commits_since
from csp.room.agent_names import nearest
from csp.room.attention import attention
from csp.room.night_report import NightReport

#: The time of a report without a session and without a time.
DEFAULT_S: Final = 12 * 3600.0
#: The number of events before it that are read to know what was going on then.
EARLIER: Final = 20_000


async def get_report(gateway: Gateway, call: Asked[ReportParams]) -> ReportView:
    """Report what happened since a time, or since the start of a session."""
    await gateway.writer.settle()
    room, now = gateway.writer.room, gateway.clock()
    wanted = call.query.session
    session = room.sessions.find(wanted) if wanted is not None else None
    if wanted is not None and session is None:
        known = [str(one) for one in room.sessions.by_id]
        raise NotFound(f"unknown session {wanted!r}", nearest(wanted, known) if known else "see: csp history")
    since = call.query.since
    if since is None:
        since = session.started_at if session is not None else now - DEFAULT_S
    items = attention(room, now)
    folders = {Path(run.context.dir) for run in room.runs.by_id.values() if run.context and run.context.dir}
    if gateway.settings.project is not None and gateway.hosts_runs:
        folders.add(gateway.settings.project.root)
    report = NightReport(since, session.id if session is not None else None)
    view = gateway.writer.journal.view

    def read() -> tuple[ReportCommits, ...]:
        report.add_all(_events_of(view, since))
        env = process_environment()
        return _distinct([commits_since(folder, since, env) for folder in sorted(folders)])

    return report.view(now, items, await asyncio.to_thread(read))


def _distinct(found: list[ReportCommits | None]) -> tuple[ReportCommits, ...]:
    """Return the commits of each repository once, even if several of its directories are known."""
    by_subjects = {commits.subjects: commits for commits in found if commits is not None}
    return tuple(by_subjects.values())


def _events_of(view: JournalView, since: float) -> list[AnyEvent]:
    """Return the events since a time and some before it, oldest first."""

    def newest_first() -> Iterator[AnyEvent]:
        earlier = 0
        for _, line in view.read_back():
            try:
                event = decode_event(line)
            except (BadInput, msgspec.MsgspecError):
                continue
            earlier += event.ts < since
            if earlier > EARLIER:
                return
            yield event

    return list(islice(newest_first(), 1_000_000))[::-1]
