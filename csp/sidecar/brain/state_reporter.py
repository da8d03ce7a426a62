"""Report the CLI's activity to the room: its state, its progress in a turn and the tokens used so far."""

import asyncio
import logging
import math
import re
import time
from collections.abc import Awaitable
from datetime import datetime, timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from csp.client import Client
from csp.errors import CspError, StorageFull, TooMany, Unreachable
from csp.protocol.enums import Ending, NoticeKind, ReportedAgentState
from csp.protocol.requests import AgentNotice, Choice, Usage
from csp.protocol.requests import Dialog as DialogBody
from csp.room.dialogs import subject_of
from csp.sidecar.inject.message_progress import MessageProgress
from csp.sidecar.state.cli_state import CliState
from csp.terminal.dialog_command import shows_command
from csp.terminal.gates import agent_state, asks_permission
from csp.terminal.reply_tracker import Asked, Attached, Bypassed, CapturedActivity, CapturedReply, Returned
from csp.terminal.screen_reader import Limit, ScreenDialog

log = logging.getLogger(__name__)

#: The time for which a state must last to be reported; a screen being redrawn passes through many states.
STANDS_S: Final = 0.12
#: How long a CLI must show only unknown content before a person is called: a CLI that is ending does so too.
LOST_S: Final = 2.0
LOOK_S: Final = 0.5
RETRY_S: Final = 2.0
MAX_DETAIL: Final = 1500
MAX_TOOL: Final = 200
#: A longer command is not reported: a rule must not approve a command that is not complete.
MAX_COMMAND: Final = 8000
#: The kind of a dialog that the CLI itself announced.
PERMISSION: Final = "permission"
#: The interval for reporting work on a turn, and the minimum interval for reporting its tokens.
KEEPALIVE_S: Final = 5.0
METER_S: Final = 1.0
ATTACHED: Final = "a file was attached that no message requested"
_CLOCK: Final = re.compile(
    r"(?<![\d:])(\d{1,2})(?::(\d{2}))?\s*([ap])\.?m\b|(?<![\d:])(\d{1,2}):(\d{2})(?!\s*[ap]m)", re.I
)
_SPAN: Final = re.compile(
    r"(?<!\d)(\d{1,9})\s*(d|h|m|s)(?:ays?|ours?|rs?|in(?:ute)?s?|ec(?:ond)?s?)?\b", re.I
)
_DATE: Final = re.compile(r"\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+(\d{1,2})\b", re.I)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_UNITS: Final = {"d": 86_400, "h": 3600, "m": 60, "s": 1}


class ShownState(msgspec.Struct, frozen=True, kw_only=True):
    state: ReportedAgentState
    detail: str = ""
    until: float | None = None
    dialog: DialogBody | None = None
    #: The kind of the dialog or screen, as the profile calls it.
    asks: str = ""
    #: The branch and the changed files of the worktree.
    work: str = ""

    @property
    def is_lost(self) -> bool:
        """Whether something unknown receives the keys: a menu, or a CLI that is about to end."""
        is_known = bool(self.asks) or self.dialog is not None or self.detail == ATTACHED
        return self.state is ReportedAgentState.NEEDS_HUMAN and not is_known

    @property
    def needs_person(self) -> bool:
        return self.state in (ReportedAgentState.NEEDS_APPROVAL, ReportedAgentState.NEEDS_HUMAN)


class StateReporter:
    """A reporter of states, which reports each state once it is stable."""

    def __init__(self, cli: CliState, client: Client) -> None:
        self._cli = cli
        self._client = client
        self._reported: ShownState | None = None
        #: The last permission request, with arguments that the dialog may only show in part.
        self.asked: Asked | None = None
        self._read_limit: Limit | None = None
        self._read_until: float | None = None
        #: The account's limit as reported by the CLI: its text and its end.
        self.limit: tuple[str, float | None] | None = None
        #: Whether a warning has paused the agent: nothing is typed until a person resumes it.
        self._is_alarmed = False
        #: The last dialog that showed only its question, with the text that first appeared above it.
        self._context: ScreenDialog | None = None
        #: The last tool that the CLI has called in this turn, and how it ended.
        self._tool, self._ending = "", ""
        #: The last tool of the last reply with its ending, where the CLI tells.
        self.last_tool = ""
        #: The branch and the changed files of the worktree.
        self._work = ""
        #: Set after each tool and each reply, which may have changed files.
        self.worked = asyncio.Event()
        #: Notices that the room has not received yet.
        self._notices: list[AgentNotice] = []

    @property
    def is_idle(self) -> bool:
        """Return whether the room has received every notice."""
        return not self._notices

    def notify(self, kind: NoticeKind, detail: str) -> None:
        """Notify people, whether or not the state changes."""
        self._notices.append(AgentNotice(kind=kind, detail=_cut(detail)))
        self._cli.changed()

    def warn(self, outcome: Attached | Bypassed) -> None:
        """Warn people about an action that no message requested."""
        if isinstance(outcome, Bypassed):
            self.notify(NoticeKind.PAST_THE_ROOM, outcome.to)
            return
        # The room pauses the agent too, but nothing may be typed before its confirmation arrives.
        self._cli.is_paused = self._is_alarmed = True
        self.notify(NoticeKind.FILE_ATTACHED, outcome.path)

    def note_asked(self, asked: Asked) -> None:
        """Record a permission request from the CLI.

        If there are two at once, it is unknown which of them is on the screen, so no rule may answer it.
        """
        is_second = self._cli.pane.is_asking and self.asked is not None and asked != self.asked
        self.asked = replace(asked, command="") if is_second else asked

    @property
    def asked_command(self) -> str:
        """The whole command line that the CLI is asking to run; empty if it is asking for anything else."""
        command = ""
        if self._cli.pane.is_asking:
            command = self.asked.command if self.asked is not None else ""
        elif dialog := self._cli.pane.reading.dialog:
            # Codex does not report its questions, but it records a call before it asks.
            command = self._cli.tracker.open_command
            command = command if shows_command(dialog.subject, command) else ""
        return command if len(command) <= MAX_COMMAND else ""

    def note_tool(self, piece: CapturedActivity) -> None:
        """Note the tool that the CLI calls, with the command or the file that it is about."""
        if piece.tool:
            subject = subject_of(DialogBody(arguments=piece.arguments[:MAX_COMMAND]))
            about = ": ".join(filter(None, (piece.tool, " ".join(subject.split()))))
            self._tool, self._ending = about[:MAX_TOOL], ""

    def note_returned(self, returned: Returned) -> None:
        """Note how the last tool has ended."""
        self._ending = returned.ending
        self.worked.set()

    def note_work(self, work: str) -> None:
        """Note the branch and the changed files of the worktree."""
        self._work = work
        self._cli.changed()

    @property
    def doing(self) -> str:
        """The last tool that the CLI has called for the reply it works on, and how that ended."""
        return ": ".join(filter(None, (self._tool, self._ending)))

    def note_reply(self, reply: CapturedReply) -> None:
        """Record the limit that a reply ran into, or that there is none any more."""
        self.last_tool = f"last: {self.doing}" if self._tool and self._ending else ""
        self._tool = self._ending = ""
        self.worked.set()
        if reply.how is Ending.LIMITED:
            self.limit = (reply.reason or reply.text, until_time(reply.until or "", time.time()))
        elif reply.how is Ending.DONE:
            self.limit = None

    async def run(self) -> None:
        """Report each change, until cancelled."""
        while True:
            self.observe()
            shown = self.shown()
            if self._notices:
                await self._report(shown, self._notices[0])
                continue
            if shown != self._reported:
                # The first report shows that the agent is present, so it is sent without delay.
                await self._settle(shown)
                self.observe()
                now = self.shown()
                # Also report when no person is needed any more, even if the exact state keeps changing.
                was_needed = self._reported is not None and self._reported.needs_person
                if now == shown or (was_needed and not shown.needs_person and not now.needs_person):
                    await self._report(now)
                continue
            await self._cli.wait(time.monotonic() + LOOK_S)

    async def _settle(self, shown: ShownState) -> None:
        """Wait until a state has been stable for a while, or until a lost CLI shows something else."""
        if self._reported is None:
            return
        if not shown.is_lost:
            await asyncio.sleep(STANDS_S)
            return
        deadline = time.monotonic() + LOST_S
        while self.shown() == shown and time.monotonic() < deadline:
            await self._cli.wait(min(deadline, time.monotonic() + LOOK_S))
            self.observe()

    async def _report(self, shown: ShownState, notice: AgentNotice | None = None) -> None:
        self._reported = shown
        try:
            await self._client.state(
                shown.state,
                shown.detail,
                shown.until,
                shown.dialog,
                notice,
                asks=shown.asks,
                work=shown.work,
            )
        except Unreachable:
            raise
        except (StorageFull, TooMany) as error:
            log.warning("room could not accept the state", extra={"why": error.message})
            await asyncio.sleep(RETRY_S if notice else 0)
            return
        except CspError as error:
            log.warning("state was refused", extra={"state": shown.state, "why": error.message})
        if notice:
            self._notices.remove(notice)

    def forget(self) -> None:
        """Report the state again, because the room may have lost it."""
        self._reported = None
        self._cli.changed()

    def observe(self) -> None:
        """Update the data from which `shown` computes the state."""
        self._cli.observe()
        self._is_alarmed = self._is_alarmed and self._cli.is_paused
        if self.limit is not None and self.limit[1] is not None and self.limit[1] <= time.time():
            self.limit = None
        limit = self._cli.pane.reading.limit
        if limit is not None and limit != self._read_limit:
            # Computed once per notice, because the same words mean a different time tomorrow.
            self._read_limit, self._read_until = limit, until_time(limit.until_text, time.time())

    @property
    def holding_limit(self) -> tuple[str, float | None] | None:
        """The account's current limit and its end, from the CLI's record or else from its screen."""
        shown = self._cli.pane.reading.limit
        return self.limit if self.limit or shown is None else (shown.text, self._read_until)

    def shown(self) -> ShownState:
        """Return the state to report, as of the last observation."""
        return replace(self._shown(), work=self._work)

    def _shown(self) -> ShownState:
        now = time.monotonic()
        facts, reading = self._cli.snapshot(now), self._cli.pane.reading
        if self._is_alarmed:
            return ShownState(state=ReportedAgentState.NEEDS_HUMAN, detail=ATTACHED)
        limit = self.holding_limit
        state = agent_state(
            facts,
            self._cli.gate_rules,
            now,
            is_limited=limit is not None,
            is_permission=asks_permission(
                reading.dialog,
                is_told=self._cli.profile.delivery.proof == "hook",
                is_asking=self._cli.pane.is_asking,
            ),
        )
        match state:
            case ReportedAgentState.LIMITED if limit is not None:
                return ShownState(state=state, detail=_cut(limit[0]), until=_to_minute(limit[1]))
            case ReportedAgentState.NEEDS_APPROVAL:
                body = self._question(reading.dialog)
                kind = reading.dialog.kind if reading.dialog and not self._cli.pane.is_asking else PERMISSION
                return ShownState(
                    state=state, detail=_cut(body.question or body.tool), dialog=body, asks=kind
                )
            case ReportedAgentState.NEEDS_HUMAN:
                asked = self._question(reading.blocking) if reading.blocking else None
                trouble = "the program is stopped" if facts.is_stopped else "I can't find its input box"
                if reading.blocked is not None:
                    trouble = f"{reading.blocked.kind}: {reading.blocked.text}"
                kind = reading.blocked.kind if reading.blocked else ""
                return ShownState(state=state, detail=_cut(trouble), dialog=asked, asks=kind)
            case ReportedAgentState.BUSY if self._cli.gate_rules.guesses_idle and reading.work:
                return ShownState(state=state, detail=_cut(f'its screen shows "{reading.work[0]}"'))
            case ReportedAgentState.BUSY:
                return ShownState(state=state, detail=self.doing)
            case ReportedAgentState.IDLE:
                return ShownState(state=state, detail=self.last_tool)
            case _:
                return ShownState(state=state)

    def _question(self, dialog: ScreenDialog | None) -> DialogBody:
        """Return the open question, from the CLI's own record if possible, else from the screen."""
        asked = self.asked if self._cli.pane.is_asking else None
        subject = self._subject(dialog) if dialog else ""
        choices = dialog.choices if dialog else ()
        return DialogBody(
            tool=(asked.tool if asked else "")[:500],
            arguments=(asked.arguments if asked else subject)[:8000],
            question=_cut(dialog.question if dialog else ""),
            choices=tuple(Choice(number=each.number, label=each.label[:500]) for each in choices[:30]),
            runs=self.asked_command,
        )

    def _subject(self, dialog: ScreenDialog) -> str:
        """Return the subject of a dialog; rows above it may move, so the ones seen first are kept."""
        if dialog.subject or not dialog.context:
            return dialog.subject
        if self._context is None or not dialog.is_same(self._context):
            self._context = dialog
        return self._context.context


def _cut(text: str) -> str:
    return text if len(text) <= MAX_DETAIL else text[: MAX_DETAIL - 1] + "…"


def _to_minute(until: float | None) -> float | None:
    """Round up a time derived from the current time, so that repeated computations give the same result.

    Rounded down, the agent would be asked again before its limit is reset.
    """
    return None if until is None else math.ceil(until / 60) * 60.0


class TurnKeepalive:
    """A keepalive that extends the turn while a tool runs or text arrives, but not for a silent model."""

    def __init__(self, cli: CliState, client: Client, progress: MessageProgress) -> None:
        self._cli = cli
        self._client = client
        self._progress = progress
        self._looked_at = time.monotonic()

    async def run(self) -> None:
        """Report work on a turn given by the room, until cancelled."""
        while True:
            await asyncio.sleep(KEEPALIVE_S)
            asked = [self._progress.find(tag) for tag in self._cli.tracker.tags]
            is_in_turn = any(one is not None and one.turn is not None for one in asked)
            if self.check_progress() and is_in_turn:
                await _report_work(self._client.working(), "room did not extend the turn")

    def check_progress(self) -> bool:
        """Return whether there was activity since the last check; waiting for a person does not count."""
        since, self._looked_at = self._looked_at, time.monotonic()
        self._cli.observe(self._looked_at)
        facts = self._cli.snapshot(self._looked_at)
        if facts.has_dialog or facts.is_asking:
            return False
        # On an unknown CLI's screen, new text may be merely a busy indicator.
        said_at, is_known = self._cli.pane.said_at, self._cli.profile.delivery.proof != "none"
        was_written = is_known and said_at is not None and said_at > since
        return self._cli.tracker.runs_tool or was_written


class Meter:
    """A reporter of the tokens that a turn has used so far, as the CLI's own record grows."""

    def __init__(self, cli: CliState, client: Client, progress: MessageProgress) -> None:
        self._cli = cli
        self._client = client
        self._progress = progress
        self._reported: tuple[str, Usage] | None = None

    async def run(self) -> None:
        """Report each change, until cancelled."""
        while True:
            news = self.news()
            if news is not None:
                self._reported = news
                reporting = self._client.working(turn=news[0], usage=news[1])
                await _report_work(reporting, "room did not record the usage")
            await asyncio.sleep(METER_S)

    def news(self) -> tuple[str, Usage] | None:
        """Return the room's current turn and its usage so far, if the usage has changed."""
        usage, tags = self._cli.tracker.usage, self._cli.tracker.tags
        asked = self._progress.find(tags[-1]) if tags else None
        if usage is None or asked is None or asked.turn is None or (asked.turn, usage) == self._reported:
            return None
        return asked.turn, usage


async def _report_work(reporting: Awaitable[object], refusal: str) -> None:
    try:
        await reporting
    except Unreachable:
        raise
    except CspError as error:
        log.warning(refusal, extra={"why": error.message})


def until_time(words: str, now: float) -> float | None:
    """Return the Unix time for words such as "3pm", "Nov 20, 9:00 AM" or "in 2h 5m"; None without a time."""
    clock, date = _CLOCK.search(words), _DATE.search(words)
    if clock is None:
        span_s = sum(int(count) * _UNITS[unit.lower()] for count, unit in _SPAN.findall(words))
        return now + span_s if span_s else None
    hour, minute = int(clock[1] or clock[4]), int(clock[2] or clock[5] or 0)
    if clock[3]:
        hour = hour % 12 + (12 if clock[3].lower() == "p" else 0)
    today = datetime.fromtimestamp(now)
    try:
        when = today.replace(hour=hour, minute=minute, second=0, microsecond=0)
        if date:
            when = when.replace(month=_MONTHS.index(date[1].lower()) + 1, day=int(date[2]))
            return (when if when >= today else when.replace(year=when.year + 1)).timestamp()
    except ValueError:
        return None
    # A time of day without a date means its next occurrence.
    return (when if when > today else when + timedelta(days=1)).timestamp()
