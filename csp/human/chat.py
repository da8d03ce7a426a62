"""Be in the room as its human: what comes in is shown, what is typed is done."""

import asyncio
import contextlib
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
#: How long events may be applied before a key gets its turn.
SLICE_S: Final = 0.005
_SPEECH: Final = "human_message,agent_call,agent_response"
_AWAY_S: Final = 0.1
_STOP_S: Final = 10.0
#: A script does not wait for a gateway that has gone as long as a person does.
_GIVE_UP_S: Final = 10.0
_TYPED_AHEAD_S: Final = 2.0
_MINE_KEPT: Final = 2000
_ON_ITS_WAY_S: Final = 5.0


class ChatOutput(Protocol):
    """Where things are shown."""

    def put(self, text: str) -> None:
        """Show what was asked for or has come in."""

    async def page(self, title: str, lines: list[str]) -> None:
        """Show the answer to a command: below its title if it is short, else where it can be read through."""

    def talk(self, text: str) -> None:
        """Show what is wrong, or what goes on around the room."""

    def bell(self) -> None:
        """Call the person."""

    def refresh(self) -> None:
        """Redraw what stays on the screen: the target and the bottom line."""

    def leave(self) -> None:
        """End the pane."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOrder:
    """Where the room is, what the pane may use; `is_person` tells a person from a script."""

    address: Address
    memory: SavedState
    env: Mapping[str, str]
    cwd: Path
    is_person: bool


class Chat:
    """The human in the room, whatever the pane looks like."""

    def __init__(self, order: ChatOrder, out: ChatOutput, look: Theme) -> None:
        self.order = order
        self.out = out
        self.look = look
        self.target = str(ALL)
        #: What the next line that is typed answers.
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
        #: The ids of what was sent from here, oldest first.
        self._mine: dict[str, asyncio.Task[None]] = {}
        self._last_words: dict[str, str] = {}
        self._mode = ""
        self._lane: asyncio.Queue[human_input.TypedLine] = asyncio.Queue()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._unfinished: set[asyncio.Task[Any]] = set()
        self._is_over = False
        self._is_ready = asyncio.Event()
        self._has_greeted = False
        self.away = ""

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
        """Say in one line that there is a fault in here; the pane goes on."""
        log.error("pane failed", exc_info=error)
        self.fail(
            Broken(f"unexpected error: {type(error).__name__}: {error}", "csp chat --verbose says more")
        )

    # --- what comes in ---------------------------------------------------------------------------

    async def serve(self) -> None:
        """Show what happens in the room until the client is closed; raise what makes that impossible."""
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
                    # What is here already comes without a pause; a key must not wait for a thousand of them.
                    await asyncio.sleep(0)
                    since = time.monotonic()
        finally:
            self._is_over = True

    async def ready(self, serving: "asyncio.Future[None]") -> None:
        """Return when the room is known, or when that has become impossible."""
        serving.add_done_callback(lambda _: self._is_ready.set())
        await self._is_ready.wait()

    def _on_look(self) -> None:
        """Show what the roster has learnt, here and in the borders of the agents' panes."""
        session = self.roster.session
        words = {seat.id: session.word_for(seat.id, seat.state) for seat in self.roster.seats}
        self.borders.set_states(words)
        self.borders.set_mode(mode_text(session, self.look.signs), session.deadline)
        self.out.refresh()

    async def _greet(self) -> None:
        seq, seen = self._client.seq or 0, self.order.memory.last_seen()
        try:
            await self.roster.look()
            await self.roster.learn_groups()
            missed = await missed_lines(self.gateway, self.look, seq, seen) if self.order.is_person else []
        except Unreachable:
            # It has gone again; what was missed is less than what is to come.
            return
        if self.order.is_person:
            name = self.order.address.room or self.gateway.url
            self.out.put(room_line(self.look, name, self.roster.summary()))
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
                pass  # it stands in what the agent has just said
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
                # It was shown as the words of an agent.
                spoken = replace(spoken, text=spoken.text.split("\n", 1)[0])
        said = event_lines.said_line(self.look, spoken, mode=self._mode) if spoken else ""
        if line := said or event_lines.news_line(self.look, event):
            self.out.put(line)

    def _on_need(self, item: AttentionItem) -> None:
        self.out.put(need_lines(self.look, item))
        self.out.bell()

    def answer(self, key: str) -> None:
        """Answer the newest thing that needs the person, as if its line had been typed."""
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
        """Say that the gateway is away, once, unless it is back already or nothing will help."""
        await asyncio.sleep(_AWAY_S)
        if self.away or self.is_connected or self._is_over:
            return
        self.away = visible(one_line(why, 200)) or "no connection"
        self.out.talk(f"the gateway is away, what you type goes out when it is back: {self.away}")
        self.out.refresh()

    @property
    def is_connected(self) -> bool:
        return self._client.status.is_connected

    def _save_seen(self) -> None:
        """Remember how far everything was shown; before the greeting, what was missed has not been."""
        if self.order.is_person and self._has_greeted and self._client.seq is not None:
            self.order.memory.save_seen(self._client.seq)

    async def _tell_ticks(self) -> None:
        """Show what became of the person's own messages; remember how far everything was shown."""
        rounds = 0
        while True:
            now = time.monotonic()
            for line in self.ticks.due(now):
                self.out.put(line)
            for message in self.ticks.silent(now) if self.is_connected else []:
                self._start(self._ask_about(message))
            rounds += 1
            if rounds % 10 == 0:
                self._save_seen()
            await asyncio.sleep(TICK_S)

    async def _ask_about(self, message: str) -> None:
        """Ask why nothing is heard of a message: the room knows who is offline, paused or busy."""
        # A state of another version is as good as none.
        with contextlib.suppress(CspError, ValueError):
            recipients = field(await self.ask("GET", f"/messages/{segment(message)}"), "recipients", dict)
            for agent, step in recipients.items():
                state = DeliveryState(field(step, "state", str))
                self.ticks.move(message, agent, state, str(step.get("reason") or ""), time.monotonic() - 1)

    # --- what is typed ---------------------------------------------------------------------------

    def enter(self, line: str) -> None:
        """Do what a line says; a stop at once, everything else in its turn."""
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
        """Ask no longer what was asked last; return it."""
        question, self.question = self.question, None
        if question is not None:
            self.out.refresh()
        return question

    def pose(self, question: Question) -> None:
        """Ask something that the next line answers; a command in its place takes the question back."""
        self.question = question
        self.out.put(f"{self.look.alert('?')} {visible(question.text)}")
        self.out.refresh()

    @property
    def prompt(self) -> str:
        """What stands before the line that is typed."""
        return self.question.prompt if self.question else self.target.replace(",", ", ")

    def quit(self) -> None:
        """Leave, whatever else is still to be done."""
        self._start(self._guarded(command_actions.leave(self, [])))

    def stop(self) -> None:
        """Stop what is running, before anything else that waits to be done."""
        self._keep(self._start(self._guarded(self._stop())))

    async def _stop(self) -> None:
        """Stop, if need be as soon as a gateway that has just died is back."""
        deadline = time.monotonic() + _STOP_S
        while True:
            try:
                return await command_actions.stop(self, [])
            except Unreachable:
                if time.monotonic() > deadline or not self.order.is_person:
                    raise
            await asyncio.sleep(2 * TICK_S)

    def _keep(self, task: "asyncio.Task[None]") -> None:
        """Have the end wait for a task."""
        self._unfinished.add(task)
        task.add_done_callback(self._unfinished.discard)

    async def finish(self, patience_s: float) -> None:
        """Return when all that was typed is done and its ticks are shown, or patience is at its end."""
        await self._lane.join()
        await asyncio.gather(*self._unfinished, return_exceptions=True)
        deadline = time.monotonic() + patience_s
        # Ticks are due by the clock, not by an event.
        while self.ticks.waiting and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(TICK_S)
        for line in self.ticks.due(time.monotonic() + 60):
            self.out.put(line)

    async def _work_lane(self) -> None:
        while True:
            what = await self._lane.get()
            # What is typed ahead needs to know who is here; if the gateway is away, it has to do without.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_TYPED_AHEAD_S):
                    await self._is_ready.wait()
            try:
                await self._guarded(self._do(what))
            finally:
                self._lane.task_done()

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something; whatever goes wrong is one line."""
        try:
            await work
        except CspError as error:
            self.fail(error)
        except OSError as error:
            self.fail(Broken(f"{error.filename or ''} {(error.strerror or str(error)).lower()}".strip()))
        except Exception as error:
            self._fail_unexpectedly(error)

    def fail(self, error: CspError, about: str = "") -> None:
        """Say in one line what could not be done."""
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
        """Have plain text go to `to` from now on."""
        self.target = to
        self.out.refresh()

    def say(self, to: str, text: str, *, urgent: bool = False) -> None:
        """Send a message; its delivery is shown later."""
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

    # --- what commands need ----------------------------------------------------------------------

    async def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Return the gateway's answer; raise what it says."""
        calls = {
            "GET": lambda: self.gateway.get(path),
            # A gateway that dies may have done it before it could answer.
            "POST": lambda: self.gateway.post_once(path, body),
            "DELETE": lambda: self.gateway.delete(path),
        }
        return await in_thread(calls[method])

    async def page(self, **query: str | int | None) -> list[dict[str, Any]]:
        """Return a page of the history, oldest first."""
        return await in_thread(lambda: page(self.gateway, **query))

    async def agents(self) -> list[dict[str, Any]]:
        """Return every agent as the room shows it."""
        return objects(await self.ask("GET", "/agents"))

    def known(self, agent: str) -> str:
        """Return an agent's id as the room has it; where the room is known, refuse one it does not have."""
        return self.roster.known(agent)

    async def last_own(self) -> str:
        """Return the id of the last message that was sent from here; what is on its way gets a moment."""
        if not self._mine:
            raise BadInput("no message was sent from here yet", "name one by its number; see /history")
        message, sending = next(reversed(self._mine.items()))
        # It goes another way than what is asked for next, which must not overtake it.
        await asyncio.wait([sending], timeout=_ON_ITS_WAY_S)
        return message

    async def last_words(self, agent: str) -> str:
        """Return what an agent said last."""
        if agent in self._last_words:
            return self._last_words[agent]
        found = await in_thread(lambda: newest(self.gateway, 200, agent=agent, types=_SPEECH))
        for item in reversed(found):
            if item.get("sender") == agent and item.get("text"):
                return field(item, "text", str)
        raise NotFound(f"{agent} has not said anything yet", "see: /history")
