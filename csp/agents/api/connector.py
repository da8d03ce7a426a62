"""A model as a participant: one call for each delivery of the room."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from uuid import uuid4

from msgspec.structs import replace

from csp.agents.api.call_errors import scrubbed
from csp.agents.api.model_call import STEP_S, ModelCall
from csp.agents.api.model_pane import ModelPane
from csp.agents.api.providers import Model
from csp.agents.api.reply_stream import Listener, is_blank, without_nulls
from csp.agents.api.request import Exchange, ask_for
from csp.client import Client, Deliver, Item, Live
from csp.errors import CallFailed, CspError, Refused, Unreachable
from csp.protocol.enums import (
    AgentId,
    ControlVerb,
    DeliverKind,
    DeliveryState,
    Ending,
    ReportedAgentState,
    ReportedState,
)
from csp.protocol.events import AgentCall, AgentResponse, DeliveryMoved, HumanMessage, Redacted, TurnMoved
from csp.protocol.requests import Usage
from csp.protocol.session_parts import TurnState
from csp.room.commands import DEFAULT_WINDOW, WindowSize
from csp.room.sessions.session_reducer import KEPT_CHARS, KEPT_ITEMS
from csp.room.sessions.session_state import OPEN, cut
from csp.room.sessions.session_state import WindowItem as Heard

log = logging.getLogger(__name__)

#: Number of threads whose last messages are remembered.
KEPT_THREADS: Final = 64
#: States in which nobody waits for the reply of a turn any more.
_GIVEN_UP: Final = frozenset(TurnState) - OPEN - {TurnState.REPLIED}
Price = Callable[[Usage], float | None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """The agent's id, its model, its prompts and its prices."""

    agent: AgentId
    model: Model
    model_name: str
    system: str
    prompts: Mapping[str, str]
    price: Price
    secret: str = ""
    prices: str | None = None
    step_s: float = STEP_S
    window: WindowSize = DEFAULT_WINDOW


class _Work:
    """One delivery that is being answered; if it is no longer `wanted`, nothing is posted."""

    def __init__(self, item: Deliver) -> None:
        self.item = item
        self.is_wanted = True
        self.task: asyncio.Task[None] | None = None
        self.calling: ModelCall | None = None
        self._has_begun = False
        self._is_cancelled = False

    def take_usage(self) -> Usage | None:
        """Return the usage of its call, once: the first caller reports it to the room."""
        calling, self.calling = self.calling, None
        return calling.usage if calling else None

    def begin(self) -> None:
        """Raise CancelledError if it was cancelled before it started."""
        self._has_begun = True
        if self._is_cancelled:
            raise asyncio.CancelledError

    def cancel(self, *, is_wanted: bool) -> None:
        self.is_wanted = self.is_wanted and is_wanted
        is_news, self._is_cancelled = not self._is_cancelled, True
        # A task that is cancelled before its first step never runs its cleanup, and one that is cancelled
        # again during its cleanup never finishes it.
        if is_news and self.task is not None and self._has_begun:
            self.task.cancel()


class Connector:
    """Answers for one model; `client` may change when the room moves."""

    def __init__(self, voice: AgentConfig, client: Client, pane: ModelPane) -> None:
        self._voice = voice
        self.client = client
        self._pane = pane
        self._works: dict[str, _Work] = {}
        self._heard: dict[str, deque[Heard]] = {}
        self._exchanges: dict[str, Exchange] = {}
        self._lines: dict[str, asyncio.Lock] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._trouble = ""
        #: Why there will be no more answers, once that is decided.
        self._leaving = ""
        self._limited_until = 0.0
        #: The work that streams into the pane: two answers at once would be mixed.
        self._speaking: _Work | None = None
        self._is_watched = False
        self._told: tuple[ReportedAgentState, str, float | None] | None = None

    # --- from the room ---------------------------------------------------------------------------

    async def run(self) -> None:
        """Work until the client ends."""
        self._do(self._tell_state())
        async for item in self.client:
            self.take(item)

    def take(self, item: Item) -> None:
        """Handle one item from the room."""
        match item:
            case Deliver(kind=DeliverKind.CONTROL):
                self._do(self._obey(item))
            case Deliver() if item.id not in self._works:
                work = self._works[item.id] = _Work(item)
                work.task = self._do(self._serve(work))
            case Live():
                self._is_watched = self._is_watched if item.watch is None else item.watch
                if item.watch:
                    self._do(self.client.show(screen=self._pane.screen()))
            case TurnMoved() if item.agent == self._voice.agent and item.state in _GIVEN_UP:
                self._drop(lambda work: work.item.turn == item.turn)
            case DeliveryMoved() if item.agent == self._voice.agent and item.state is DeliveryState.WITHDRAWN:
                self._drop(lambda work: work.item.id == item.message)
            case HumanMessage() | AgentCall() | AgentResponse():
                self.hear(Heard(item.id, item.sender, item.target, cut(item.text, KEPT_CHARS)), item.thread)
            case Redacted():
                self._forget(item.message)
            case _:
                pass

    def hear(self, said: Heard, thread: str) -> None:
        """Remember a message for the window of an answer."""
        items = self._heard.pop(thread, None) or deque(maxlen=KEPT_ITEMS)
        if all(item.id != said.id for item in items):
            items.append(said)
        self._heard[thread] = items
        while len(self._heard) > KEPT_THREADS:
            del self._heard[next(iter(self._heard))]

    def _forget(self, message: str) -> None:
        for items in self._heard.values():
            for item in [item for item in items if item.id == message]:
                items.remove(item)

    def _do(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # --- work ------------------------------------------------------------------------------------

    def _drop(self, is_meant: Callable[[_Work], bool]) -> None:
        """Cancel work that nobody waits for any more."""
        for work in list(self._works.values()):
            if is_meant(work):
                work.cancel(is_wanted=False)

    async def _serve(self, work: _Work) -> None:
        item = work.item
        try:
            work.begin()
            if item.kind is DeliverKind.TURN:
                await self._answer(work)
            else:
                # Answer one message after the other, so that each answer includes the one before.
                async with self._lines.setdefault(item.thread, asyncio.Lock()):
                    await self._answer(work)
        except asyncio.CancelledError:
            ending = Ending.FAILED if self._leaving else Ending.INTERRUPTED
            await self._fail(work, CallFailed(self._leaving or "it was interrupted"), ending)
        finally:
            self._works.pop(item.id, None)
            if self._speaking is work:
                self._speaking = None
        await self._tell_state()

    async def _answer(self, work: _Work) -> None:
        voice, item, is_turn = self._voice, work.item, work.item.kind is DeliverKind.TURN
        # The clock of a turn starts with its confirmation.
        state = ReportedState.SUBMITTED if is_turn else ReportedState.TYPED
        if await self._refusal(lambda: self.client.report(item.id, state), "delivery was withdrawn", item):
            return
        await self._tell_state()
        window = self._heard.get(item.thread, ())
        before = self._exchanges.get(item.thread)
        ask = ask_for(item, voice.system, voice.prompts, tuple(window), before, voice.window)
        work.calling = ModelCall(voice.model, voice.model_name, voice.secret, voice.step_s)
        self._pane.ask(item)

        def note(line: str) -> None:
            log.warning("call is tried again", extra={"why": line, "message_id": item.id})
            self._pane.note(line)

        try:
            reply = without_nulls(await work.calling.run(ask, lambda words: self._show(work, words), note))
            if is_blank(reply):
                raise CallFailed("its answer was empty")
        except CallFailed as failure:
            await self._fail(work, failure, Ending.FAILED)
            return
        except Exception as error:
            why = scrubbed(f"{type(error).__name__}: {error}", voice.secret)
            log.error("call failed unexpectedly", extra={"why": why})
            await self._fail(work, CallFailed("an error in the connector"), Ending.FAILED)
            return
        if is_turn:
            self.remember(item.thread, Exchange(asked=ask.said[0].text, answered=reply))
        await self._post(work, reply)

    def remember(self, thread: str, exchange: Exchange) -> None:
        """Keep the last exchange of a thread, for a repair."""
        self._exchanges.pop(thread, None)
        self._exchanges[thread] = exchange
        while len(self._exchanges) > KEPT_THREADS:
            del self._exchanges[next(iter(self._exchanges))]

    # --- to the room -----------------------------------------------------------------------------

    async def _post(self, work: _Work, reply: str) -> None:
        item, priced = work.item, self._priced(work.take_usage())
        if self._speaking is not work:
            # Another answer was streaming into the pane while this one arrived.
            self._pane.line(Listener().hear(reply))
        self._pane.finish()
        if priced is not None:
            self._pane.cost(priced, self._voice.prices)
        if not work.is_wanted:
            await self._tell_cost(work, priced)
            return
        self._trouble, self._limited_until = "", 0.0
        id = uuid4().hex
        bound = {"turn": item.turn} if item.kind is DeliverKind.TURN else {"reply_to": item.id}
        why = await self._refusal(
            lambda: self.client.output(reply, usage=priced, id=id, **bound), "answer was refused", item
        )
        if why:
            await self._fail(work, CallFailed(why), Ending.FAILED)

    async def _tell_cost(self, work: _Work, priced: Usage | None) -> None:
        """Report the usage of a call whose answer is no longer wanted; the room drops the rest."""
        if priced is None or work.item.kind is not DeliverKind.TURN:
            return
        fields: dict[str, Any] = {"turn": work.item.turn, "ending": Ending.INTERRUPTED, "id": uuid4().hex}
        await self._refusal(
            lambda: self.client.output("", usage=priced, **fields), "cost was not taken", work.item
        )

    async def _fail(self, work: _Work, failure: CallFailed, ending: Ending) -> None:
        """Report that there will be no answer, and why; this is not part of the conversation."""
        item, reason, priced = work.item, failure.message, self._priced(work.take_usage())
        log.warning("call failed", extra={"message_id": item.id, "why": reason})
        self._pane.finish()
        self._pane.note(f"no answer: {reason}" + (f" ({failure.hint})" if failure.hint else ""))
        if not work.is_wanted:
            await self._tell_cost(work, priced)
            return
        if ending is Ending.FAILED:
            self._trouble = reason
        if failure.is_passing and failure.after_s:
            ending, self._limited_until = Ending.LIMITED, time.time() + failure.after_s
            self._do(self._recover(failure.after_s))
            await self._tell_state()
        fields: dict[str, Any] = {"ending": ending, "reason": reason, "usage": priced, "id": uuid4().hex}

        async def tell() -> None:
            if item.kind is DeliverKind.TURN:
                await self.client.output("", turn=item.turn, **fields)
            else:
                await self.client.report(item.id, ReportedState.FAILED, reason)

        await self._refusal(tell, "failure was not wanted", item)

    def _priced(self, usage: Usage | None) -> Usage | None:
        if usage is None:
            return None
        cost_usd = self._voice.price(usage)
        return replace(usage, cost_usd=cost_usd, unpriced=cost_usd is None)

    async def _refusal(
        self, act: Callable[[], Awaitable[object]], what: str, item: Deliver | None = None
    ) -> str:
        """Call the room, with the new client if it has moved meanwhile; log and return why it refuses."""
        while True:
            client = self.client
            try:
                await act()
                return ""
            except CspError as error:
                if isinstance(error, Unreachable | Refused) and self.client is not client:
                    continue
                known = {"message_id": item.id} if item else {}
                log.info(what, extra={**known, "why": error.message})
                return error.message

    async def _recover(self, after_s: float) -> None:
        """Report that the provider's Retry-After has passed."""
        await asyncio.sleep(after_s + 0.1)
        await self._tell_state()

    async def _tell_state(self) -> None:
        """Report the agent's state with its last error."""
        state, detail, until = ReportedAgentState.IDLE, "", None
        if self._trouble:
            detail = f"its last call failed: {self._trouble}"
        if self._limited_until > time.time():
            state, until = ReportedAgentState.LIMITED, self._limited_until
        elif self._works:
            state = ReportedAgentState.BUSY
        told = (state, detail, until)
        if told != self._told:
            self._told = told
            await self._refusal(lambda: self.client.state(state, detail, until), "state was not taken")

    # --- controls and watchers -------------------------------------------------------------------

    async def _obey(self, item: Deliver) -> None:
        problem, turn = "", item.turn
        if item.control is ControlVerb.INTERRUPT:
            # Cancel a turn that the room has ended, or everything that a person interrupts.
            found = [work for work in self._works.values() if turn is None or work.item.turn == turn]
            for work in found:
                work.cancel(is_wanted=turn is None)
            problem = "" if found or turn is not None else "nothing is running"
        elif item.control in (ControlVerb.APPROVE, ControlVerb.DENY):
            problem = "an API model has no dialog"
        elif item.control is ControlVerb.RESTART:
            problem = "an API model has nothing to start again"
        state = ReportedState.FAILED if problem else ReportedState.CONFIRMED
        await self._refusal(
            lambda: self.client.control_done(item.id, state, problem), "control was not wanted", item
        )

    def _show(self, work: _Work, words: str) -> None:
        """Show text as it arrives: in the pane only one answer at a time, to watchers all of them."""
        if not words:
            return
        if self._speaking is None:
            self._speaking = work
        if self._speaking is work:
            self._pane.say(words)
        if self._is_watched:
            self._do(self.client.show(text=words))

    # --- the end ---------------------------------------------------------------------------------

    async def stop(self, reason: str) -> None:
        """Fail the work in progress; nobody else will answer it."""
        self._leaving = reason
        works = list(self._works.values())
        for work in works:
            work.cancel(is_wanted=True)
        await asyncio.gather(*(work.task for work in works if work.task), return_exceptions=True)
        for task in self._tasks:
            task.cancel()
