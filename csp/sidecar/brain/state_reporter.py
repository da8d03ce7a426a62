"""Reports to the room what the CLI is doing."""

import asyncio
import logging
import time
from dataclasses import dataclass
from typing import Final

from csp.client import Client
from csp.errors import CspError, StorageFull, TooMany, Unreachable
from csp.protocol.enums import NoticeKind, ReportedAgentState
from csp.protocol.requests import AgentNotice, Choice
from csp.protocol.requests import Dialog as DialogBody
from csp.sidecar.brain.limit_reset import until_time
from csp.sidecar.state.cli_state import CliState
from csp.terminal.agent_state import agent_state, asks_permission
from csp.terminal.dialogs import ScreenDialog
from csp.terminal.gates import PaneFacts
from csp.terminal.reply_tracker import Asked, Attached, Bypassed
from csp.terminal.screen_reader import Limit, Reading

log = logging.getLogger(__name__)

#: A state is told when it has stood so long: a screen being redrawn passes through many.
STANDS_S: Final = 0.12
LOOK_S: Final = 0.5
RETRY_S: Final = 2.0
MAX_DETAIL: Final = 1500
ATTACHED: Final = "a file was attached that no message asked for"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownState:
    state: ReportedAgentState
    detail: str = ""
    until: float | None = None
    dialog: DialogBody | None = None

    @property
    def needs_person(self) -> bool:
        return self.state in (ReportedAgentState.NEEDS_APPROVAL, ReportedAgentState.NEEDS_HUMAN)


class StateReporter:
    """Reports each state once it has settled."""

    def __init__(self, cli: CliState, client: Client) -> None:
        self._cli = cli
        self._client = client
        self._reported: ShownState | None = None
        #: The last permission asked for, with arguments that the dialog may not show whole.
        self.asked: Asked | None = None
        self._read_limit: Limit | None = None
        self._read_until: float | None = None
        #: Until when a limit of the account lasts, as the CLI put it.
        self.limit: tuple[str, float | None] | None = None
        #: Nothing more is typed until a person says so.
        self._is_alarmed = False
        #: Notices that the room does not have yet.
        self._notices: list[AgentNotice] = []

    @property
    def is_idle(self) -> bool:
        """Tell whether the room has every notice."""
        return not self._notices

    def notify(self, kind: NoticeKind, detail: str) -> None:
        """Notify people, whether the state changes or not."""
        self._notices.append(AgentNotice(kind=kind, detail=_cut(detail)))
        self._cli.changed()

    def warn(self, outcome: Attached | Bypassed) -> None:
        """Warn people of something that no message has asked for."""
        if isinstance(outcome, Bypassed):
            self.notify(NoticeKind.PAST_THE_ROOM, outcome.to)
            return
        # The room pauses the agent too; nothing may be typed before that comes back.
        self._cli.is_paused = self._is_alarmed = True
        self.notify(NoticeKind.FILE_ATTACHED, outcome.path)

    async def run(self) -> None:
        """Report each change, until cancelled."""
        while True:
            self.observe()
            shown = self.shown()
            if self._notices:
                await self._report(shown, self._notices[0])
                continue
            if shown != self._reported:
                # The first word is that we are here at all, so it does not wait.
                await asyncio.sleep(STANDS_S if self._reported else 0)
                self.observe()
                now = self.shown()
                if now == shown or self._is_freed(shown, now):
                    await self._report(now)
                continue
            await self._cli.wait(time.monotonic() + LOOK_S)

    def _is_freed(self, *shown: ShownState) -> bool:
        """Tell whether a person is needed no more, although what comes of it changes from look to look."""
        return (
            self._reported is not None
            and self._reported.needs_person
            and not any(s.needs_person for s in shown)
        )

    async def _report(self, shown: ShownState, notice: AgentNotice | None = None) -> None:
        self._reported = shown
        try:
            await self._client.state(shown.state, shown.detail, shown.until, shown.dialog, notice)
        except Unreachable:
            raise
        except (StorageFull, TooMany) as error:
            log.warning("room could not take the state", extra={"why": error.message})
            await asyncio.sleep(RETRY_S if notice else 0)
            return
        except CspError as error:
            log.warning("state was refused", extra={"state": shown.state, "why": error.message})
        if notice:
            self._notices.remove(notice)

    def forget(self) -> None:
        """Tell the state again: the room may have forgotten it."""
        self._reported = None
        self._cli.changed()

    def observe(self) -> None:
        """Bring what `shown` is made of up to date."""
        self._cli.observe()
        self._is_alarmed = self._is_alarmed and self._cli.is_paused
        if self.limit is not None and self.limit[1] is not None and self.limit[1] <= time.time():
            self.limit = None
        limit = self._cli.pane.reading.limit
        if limit is not None and limit != self._read_limit:
            # Once for each notice: tomorrow the same words mean another time.
            self._read_limit, self._read_until = limit, until_time(limit.until_text, time.time())

    @property
    def holding_limit(self) -> tuple[str, float | None] | None:
        """The limit of the account that holds, by the CLI's own word or by its screen, with its end."""
        shown = self._cli.pane.reading.limit
        return self.limit if self.limit or shown is None else (shown.text, self._read_until)

    def shown(self) -> ShownState:
        """Return what the room should see, as of the last observation."""
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
                return ShownState(state=state, detail=_cut(body.question or body.tool), dialog=body)
            case ReportedAgentState.NEEDS_HUMAN:
                asked = self._question(reading.blocking) if reading.blocking else None
                return ShownState(state=state, detail=_cut(_trouble(facts, reading)), dialog=asked)
            case ReportedAgentState.BUSY if self._cli.gate_rules.guesses_idle and reading.work:
                return ShownState(state=state, detail=_cut(f'its screen shows "{reading.work[0]}"'))
            case _:
                return ShownState(state=state)

    def _question(self, dialog: ScreenDialog | None) -> DialogBody:
        """Return what is asked: by the CLI's own word where there is one, else as the screen shows it."""
        asked = self.asked if self._cli.pane.is_asking else None
        subject = dialog.subject if dialog else ""
        choices = dialog.choices if dialog else ()
        return DialogBody(
            tool=(asked.tool if asked else "")[:500],
            arguments=(asked.arguments if asked else subject)[:8000],
            question=_cut(dialog.question if dialog else ""),
            choices=tuple(Choice(number=each.number, label=each.label[:500]) for each in choices[:30]),
        )


def _trouble(facts: PaneFacts, reading: Reading) -> str:
    """Say what a person has to look at in the pane."""
    if reading.blocked is not None:
        return f"{reading.blocked.kind}: {reading.blocked.text}"
    return "the program is stopped" if facts.is_stopped else "its screen has no place to type in"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_DETAIL else text[: MAX_DETAIL - 1] + "…"


def _to_minute(until: float | None) -> float | None:
    """Round a time that is reckoned from now, so that it stays the same from look to look."""
    return None if until is None else round(until / 60) * 60.0
