"""Take part in the room as its human: show incoming events and execute typed lines."""

import asyncio
import contextlib
import itertools
import logging
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, Self
from uuid import uuid4

from csp.client import Client, Deliver, Live, Status
from csp.client.background_tasks import in_thread
from csp.config import nearest
from csp.errors import BadInput, Broken, CspError, NotFound, Unreachable
from csp.http_client import GatewayClient, field, newest, objects, page, segment
from csp.human import command_actions, command_table, event_lines
from csp.human.catch_up import hint_line, missed_lines, room_line
from csp.human.delivery_ticks import DeliveryTicks
from csp.human.needs import Needs, need_lines
from csp.human.questions import Question, before_sending
from csp.human.roster import Roster
from csp.human.safe_text import one_line, visible
from csp.human.saved_state import SavedState
from csp.human.status_bar import mode_text
from csp.human.theme import Theme
from csp.panes.pane_borders import PaneBorders
from csp.protocol import events
from csp.protocol.attention import AttentionItem
from csp.protocol.enums import ALL, DeliveryState
from csp.protocol.notices import NoticeCode
from csp.room import human_input
from csp.room_registry import Address

log = logging.getLogger(__name__)

TICK_S: Final = 0.1
#: How long events may be processed before keys are handled.
SLICE_S: Final = 0.005
_SPEECH: Final = "human_message,agent_call,agent_response"
_AWAY_S: Final = 0.1
_STOP_S: Final = 10.0
#: A script waits for a lost gateway less long than a person does.
_GIVE_UP_S: Final = 10.0
_TYPED_AHEAD_S: Final = 2.0
_MINE_KEPT: Final = 2000
_ON_ITS_WAY_S: Final = 5.0


class ChatOutput(Protocol):
    """The interface of the place where output is shown."""

    def put(self, text: str) -> None:
        """Show requested output or an incoming event."""

    async def page(self, title: str, lines: list[str]) -> None:
        """Show the output of a command: below its title if it is short, else in a pager."""

    def talk(self, text: str) -> None:
        """Show an error, or a status line that is not part of the conversation."""

    def bell(self) -> None:
        """Alert the user."""

    def refresh(self) -> None:
        """Redraw the fixed parts of the screen: the target and the bottom line."""

    def leave(self) -> None:
        """Close the pane."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOrder:
    """The room's address and the pane's resources; `is_person` is false for a script."""

    address: Address
    memory: SavedState
    env: Mapping[str, str]
    cwd: Path
    is_person: bool


class Chat:
    """The human's part in the room, independent of how output is shown."""

    def __init__(self, order: ChatOrder, out: ChatOutput, look: Theme) -> None:
        self.order = order
        self.out = out
        self.look = look
        self.target = str(ALL)
        #: The question that the next typed line answers.
        self.question: Question | None = None
        self.failures = 0
        self.ticks = DeliveryTicks(look)
        self.gateway = GatewayClient(order.address.url, order.address.token)
        self.borders = PaneBorders(order.env)
        self.roster = Roster(self.ask, self._on_look)
        self.needs = Needs(self.ask, self._on_need, lambda: self.out.refresh())
        give_up_s = None if order.is_person else _GIVE_UP_S
        self._client = Client(
            order.address.url, order.address.token, on_status=self._on_status, give_up_s=give_up_s
        )
        #: Messages sent from here by id, oldest first.
        self._mine: dict[str, asyncio.Task[None]] = {}
        self._last_words: dict[str, str] = {}
        self._mode = self.away = ""
        self._lane: asyncio.Queue[human_input.TypedLine] = asyncio.Queue()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._unfinished: set[asyncio.Task[Any]] = set()
        self._is_over = self._has_greeted = False
        self._is_ready = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        await self.borders.start()
        for work in (self._work_lane, self._tell_ticks, self.roster.keep_fresh, self.needs.keep_fresh):
            self._start(work())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.close()
        await self.borders.close()
        await asyncio.gather(*self._unfinished, return_exceptions=True)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._save_seen()

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)

        def done(task: "asyncio.Task[None]") -> None:
            self._tasks.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                self._fail_unexpectedly(error)

        task.add_done_callback(done)
        return task

    def _fail_unexpectedly(self, error: BaseException) -> None:
        """Report an internal error in one line; the pane keeps running."""
        log.error("pane failed", exc_info=error)
        self.fail(
            Broken(f"unexpected error: {type(error).__name__}: {error}", "csp chat --verbose says more")
        )

    # --- incoming events -------------------------------------------------------------------------

    async def serve(self) -> None:
        """Show the room's events until the client is closed; raise the error if that becomes impossible."""
        try:
            await self._client.connected()
            await self._greet()
            self._has_greeted = True
            self._is_ready.set()
            since = time.monotonic()
            async for item in self._client:
                if not isinstance(item, Deliver | Live):
                    self._take(item)
                if time.monotonic() - since >= SLICE_S:
                    # Events already received arrive without pauses; a key must not wait for all of them.
                    await asyncio.sleep(0)
                    since = time.monotonic()
        finally:
            self._is_over = True

    async def ready(self, serving: "asyncio.Future[None]") -> None:
        """Wait until the room's state is known or cannot be obtained any more."""
        serving.add_done_callback(lambda _: self._is_ready.set())
        await self._is_ready.wait()

    def _on_look(self) -> None:
        """Show the roster's new state, here and in the borders of the agents' panes."""
        session = self.roster.session
        words = {seat.id: session.word_for(seat.id, seat.state) for seat in self.roster.seats}
        self.borders.set_states(words)
        self.borders.set_mode(mode_text(session, self.look.signs), session.deadline)
        if ready := self.roster.take_ready():
            self.out.put(f"{self.look.signs.dot} ready: {', '.join(map(self.look.name, ready))}")
        self.out.refresh()

    async def _greet(self) -> None:
        seq, seen = self._client.seq or 0, self.order.memory.last_seen()
        try:
            await self.roster.look()
            await self.roster.learn_groups()
            missed = await missed_lines(self.gateway, self.look, seq, seen) if self.order.is_person else []
        except Unreachable:
            # The gateway is gone again; missed messages matter less than new ones.
            return
        if self.order.is_person:
            name = self.order.address.room or self.gateway.url
            self.out.put(room_line(self.look, name, self.roster.summary()))
            self.roster.watch_starting()
        for line in missed:
            self.out.put(line)
        if self.order.is_person and seen is None:
            self.out.put(hint_line(self.look))
        with contextlib.suppress(CspError):
            await self.needs.look()

    def _take(self, event: events.AnyEvent) -> None:
        now = time.monotonic()
        match event:
            case events.MessageEvent() if event.id in self._mine:
                self.ticks.accept(event.id, event.seq, event.recipients, now)
            case events.DeliveryMoved():
                self.ticks.move(event.message, event.agent, event.state, event.reason, now)
            case events.NoticePosted() if self.ticks.tells(event):
                pass
            case events.Voted() if event.message is not None:
                pass  # it is part of the agent's message just shown
            case _:
                self._show(event)
        if isinstance(event, events.AgentCall | events.AgentResponse) and event.text:
            self._last_words[event.sender] = event.text
        self.roster.note(event)
        self.needs.note(event)

    def _show(self, event: events.AnyEvent) -> None:
        spoken = event_lines.spoken_of(event)
        if spoken is not None and self.look.columns():
            if spoken.is_of_turns or spoken.code == NoticeCode.RUN_NEEDS_PERSON:
                return  # the bottom line says so, and the list of what needs the person
            if spoken.code == NoticeCode.MODE:
                self._mode = str(spoken.params.get("mode", ""))
            is_result = spoken.code == NoticeCode.COLLABORATION_RESULT
            if is_result and spoken.params.get("outcome") in self._last_words.values():
                # It was already shown as an agent's message.
                spoken = replace(spoken, text=spoken.text.split("\n", 1)[0])
        said = event_lines.said_line(self.look, spoken, mode=self._mode) if spoken else ""
        if line := said or event_lines.news_line(self.look, event):
            self.out.put(line)

    def _on_need(self, item: AttentionItem) -> None:
        self.out.put(need_lines(self.look, item))
        self.out.bell()

    def answer(self, key: str) -> None:
        """Answer the newest item that needs the user, as if the answer's command had been typed."""
        try:
            found = self.needs.find_answer(key)
        except CspError as error:
            self.fail(error)
            return
        self.out.put(self.look.faint(f"  {visible(found.line)}"))
        self.enter(found.line)

    def _on_status(self, status: Status) -> None:
        if status.is_connected:
            if self.away:
                self.out.talk("the gateway is back")
            self.away = ""
            self.roster.wake()
            self.needs.wake()
        else:
            self._start(self._say_away(status.why))
        self.out.refresh()

    async def _say_away(self, why: str) -> None:
        """Report once that the gateway is unreachable, unless it is already back or the pane is closing."""
        await asyncio.sleep(_AWAY_S)
        if self.away or self.is_connected or self._is_over:
            return
        self.away = visible(one_line(why, 200)) or "no connection"
        self.out.talk(f"the gateway is unreachable; what you type is sent when it is back: {self.away}")
        self.out.refresh()

    @property
    def is_connected(self) -> bool:
        return self._client.status.is_connected

    def _save_seen(self) -> None:
        """Store the position up to which everything was shown, but not before missed messages were shown."""
        if self.order.is_person and self._has_greeted and self._client.seq is not None:
            self.order.memory.save_seen(self._client.seq)

    async def _tell_ticks(self) -> None:
        """Show the delivery of the user's own messages, and store the position up to which all was shown."""
        for rounds in itertools.count(1):
            now = time.monotonic()
            for line in self.ticks.due(now):
                self.out.put(line)
            for message in self.ticks.silent(now) if self.is_connected else []:
                self._start(self._ask_about(message))
            if rounds % 10 == 0:
                self._save_seen()
            await asyncio.sleep(TICK_S)

    async def _ask_about(self, message: str) -> None:
        """Ask the room about a message without news: it knows which agents are offline, paused or busy."""
        # Ignore states unknown to this version.
        with contextlib.suppress(CspError, ValueError):
            recipients = field(await self.ask("GET", f"/messages/{segment(message)}"), "recipients", dict)
            for agent, step in recipients.items():
                state = DeliveryState(field(step, "state", str))
                self.ticks.move(message, agent, state, str(step.get("reason") or ""), time.monotonic() - 1)

    # --- typed lines -----------------------------------------------------------------------------

    def enter(self, line: str) -> None:
        """Execute a typed line: a stop immediately, anything else in order."""
        what = human_input.read_line(line)
        if isinstance(what, human_input.StopLine):
            self.question = None
            self.stop()
            return
        question = self.take_back_question()
        if question is not None and not line.lstrip().startswith("/"):
            answer = question.then(line.strip())
            if answer is None:
                self.out.talk("not done")
                return
            what = answer
        elif self.order.is_person and (asked := before_sending(what, self.target)):
            self.pose(asked)
            return
        self._lane.put_nowait(what)

    def take_back_question(self) -> Question | None:
        """Withdraw the open question and return it."""
        question, self.question = self.question, None
        if question is not None:
            self.out.refresh()
        return question

    def pose(self, question: Question) -> None:
        """Ask a question that the next typed line answers; a command withdraws the question instead."""
        self.question = question
        self.out.put(f"{self.look.alert('?')} {visible(question.text)}")
        self.out.refresh()

    @property
    def prompt(self) -> str:
        """The text before the input line."""
        return self.question.prompt if self.question else self.target.replace(",", ", ")

    def quit(self) -> None:
        """Leave, regardless of unfinished work."""
        self._start(self._guarded(command_actions.leave(self, [])))

    def stop(self) -> None:
        """Stop all running work, before any queued command."""
        self._keep(self._start(self._guarded(self._stop())))

    async def _stop(self) -> None:
        """Stop all running work; if the gateway has just died, retry until it is back."""
        deadline = time.monotonic() + _STOP_S
        while True:
            try:
                return await command_actions.stop(self, [])
            except Unreachable:
                if time.monotonic() > deadline or not self.order.is_person:
                    raise
            await asyncio.sleep(2 * TICK_S)

    def _keep(self, task: "asyncio.Task[None]") -> None:
        """Make the end of the chat wait for a task."""
        self._unfinished.add(task)
        task.add_done_callback(self._unfinished.discard)

    async def finish(self, patience_s: float) -> None:
        """Wait until all typed lines are executed and their ticks are shown, or until time is up."""
        await self._lane.join()
        await asyncio.gather(*self._unfinished, return_exceptions=True)
        deadline = time.monotonic() + patience_s
        # Ticks become due over time, not through events.
        while self.ticks.waiting and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(TICK_S)
        for line in self.ticks.due(time.monotonic() + 60):
            self.out.put(line)

    async def _work_lane(self) -> None:
        while True:
            what = await self._lane.get()
            # Lines typed ahead need the list of agents, but they do not wait long for a lost gateway.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_TYPED_AHEAD_S):
                    await self._is_ready.wait()
            try:
                await self._guarded(self._do(what))
            finally:
                self._lane.task_done()

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """Await the work; report any error in one line."""
        try:
            await work
        except CspError as error:
            self.fail(error)
        except OSError as error:
            self.fail(Broken(f"{error.filename or ''} {(error.strerror or str(error)).lower()}".strip()))
        except Exception as error:
            self._fail_unexpectedly(error)

    def fail(self, error: CspError, about: str = "") -> None:
        """Report an error in one line."""
        self.failures += 1
        hint = f" ({event_lines.as_typed_here(error.hint)})" if error.hint else ""
        self.out.talk(visible(one_line(f"{about}{error.message}{hint}", 1000)))

    async def _do(self, what: human_input.TypedLine) -> None:
        match what:
            case human_input.MessageLine():
                await self._say(what)
            case human_input.SetTarget():
                self.aim(self.roster.addressees(what.to))
            case human_input.ModeLine():
                await command_table.set_mode(self, what)
            case human_input.CommandLine():
                await command_table.run(self, what)
            case human_input.InvalidLine():
                raise BadInput(what.problem, what.hint)
            case human_input.EmptyLine() | human_input.StopLine():
                pass

    async def _say(self, line: human_input.MessageLine) -> None:
        to = self.roster.addressees(line.to or self.target)
        said = {}
        for name in human_input.quoted_agents(line.text):
            if self.roster.is_known and name not in self.roster.ids:
                raise human_input.unknown_quote(name, nearest(name, self.roster.ids))
            said[name] = await self.last_words(name)
        self.say(to, human_input.insert_last_messages(line.text, said), urgent=line.urgent)
        self.aim(to)

    def aim(self, to: str) -> None:
        """Make `to` the recipient of plain text from now on."""
        self.target = to
        self.out.refresh()

    def say(self, to: str, text: str, *, urgent: bool = False) -> None:
        """Send a message, whose delivery is shown later."""
        message = uuid4().hex
        self.out.put(event_lines.own_line(self.look, to, text, urgent=urgent))
        self.ticks.expect(message, time.monotonic())
        sending = self._mine[message] = self._start(self._send(message, to, text, urgent=urgent))
        self._keep(sending)
        if len(self._mine) > _MINE_KEPT:
            del self._mine[next(iter(self._mine))]

    async def _send(self, message: str, to: str, text: str, *, urgent: bool) -> None:
        try:
            sent = await self._client.send(to, text, urgent=urgent, id=message)
        except CspError as error:
            self.ticks.forget(message)
            self.fail(error, f"{self.look.signs.failed} not sent to {to}: ")
            return
        self.ticks.accept(message, sent.seq, sent.recipients, time.monotonic())
        if not sent.recipients:
            self.out.talk(f"#{sent.seq} reached nobody: no agent is online")

    # --- for commands ----------------------------------------------------------------------------

    async def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Return the gateway's response or raise its error."""
        calls = {
            "GET": lambda: self.gateway.get(path),
            # A gateway that dies may have executed the request before it could respond.
            "POST": lambda: self.gateway.post_once(path, body),
            "DELETE": lambda: self.gateway.delete(path),
        }
        return await in_thread(calls[method])

    async def page(self, **query: str | int | None) -> list[dict[str, Any]]:
        """Return a page of the history, oldest item first."""
        return await in_thread(lambda: page(self.gateway, **query))

    async def agents(self) -> list[dict[str, Any]]:
        """Return all agents in the room's representation."""
        return objects(await self.ask("GET", "/agents"))

    def known(self, agent: str) -> str:
        """Return an agent's id as used in the room; raise for an unknown one if the roster is known."""
        return self.roster.known(agent)

    async def last_own(self) -> str:
        """Return the id of the last message sent from here, after a short wait for one in transit."""
        if not self._mine:
            raise BadInput("no message was sent from here yet", "name one by its number; see /history")
        message, sending = next(reversed(self._mine.items()))
        # It uses a different connection from the next request, which must not overtake it.
        await asyncio.wait([sending], timeout=_ON_ITS_WAY_S)
        return message

    async def last_words(self, agent: str) -> str:
        """Return an agent's last message."""
        if agent in self._last_words:
            return self._last_words[agent]
        found = await in_thread(lambda: newest(self.gateway, 200, agent=agent, types=_SPEECH))
        for item in reversed(found):
            if item.get("sender") == agent and item.get("text"):
                return field(item, "text", str)
        raise NotFound(f"{agent} has not said anything yet", "see: /history")
