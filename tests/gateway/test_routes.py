"""The handlers of the routes by themselves: what reaches the room, what comes back of it."""

import asyncio
import contextlib
from types import SimpleNamespace
from typing import Any

import pytest

from csp.errors import Forbidden, NotFound, Unauthenticated
from csp.gateway import routes
from csp.gateway.auth import Caller
from csp.gateway.broadcast import Broadcast
from csp.gateway.route_table import Call, RawJson
from csp.journal.history_query import HistoryQuery
from csp.protocol.enums import (
    HUMAN,
    AgentId,
    AgentState,
    ControlVerb,
    DeliverKind,
    JoinRole,
    MessageId,
    ParticipantKind,
    Role,
)
from csp.protocol.events import HISTORY_TYPES, ControlSent, Joined
from csp.protocol.requests import ControlBody, Dialog, HistoryParams, InboxParams, RegisterBody
from csp.protocol.responses import Deliver, HealthView, InboxView, JournalHealth, RegisteredView
from csp.room.commands import ControlAgent, Join, Rejoin
from csp.room.room_state import Participant
from tests.waiting import wait_until

CLAUDE, CODEX = AgentId("claude"), AgentId("codex")
ROOM, AGENT = Caller(HUMAN, Role.ROOM), Caller(CLAUDE, Role.AGENT, 3)
COMMON = (9, 1.0, MessageId("e-9"), CLAUDE, CLAUDE, "default", "")


class FakeGateway:
    """Notes what is asked of the room; a test gives it what the handler reads."""

    def __init__(self, *events: Any, **more: Any) -> None:
        self.done: list[Any] = []
        self.events = list(events)
        self.broadcast = Broadcast(lambda event, agent: True)
        self.presence = SimpleNamespace(
            touch=lambda agent: self.done.append(("touch", agent)),
            last_seen=lambda agent, otherwise: otherwise + 1,
        )
        self.tokens = SimpleNamespace(issue=lambda agent, epoch: f"{agent}.{epoch}")
        self.writer: Any = SimpleNamespace(safe_seq=50, settle=self._settle)
        self.is_dead = False
        self.present_now = 0
        self.__dict__ |= more

    async def submit(self, command: Any) -> list[Any]:
        self.done.append(command)
        return self.events

    async def mark_silent_offline(self) -> None:
        self.done.append("silence")

    async def _settle(self) -> None:
        self.done.append("settled")

    def recheck(self, caller: Caller) -> None:
        if self.is_dead:
            raise Unauthenticated("dead")

    @contextlib.contextmanager
    def connected(self, caller: Caller) -> Any:
        self.present_now += 1
        yield
        self.present_now -= 1


async def ask(
    handler: Any, gateway: Any, caller: Caller, body: Any = None, query: Any = None, **path: str
) -> Any:
    return await handler(gateway, Call(caller, path, query, body))


# --- participants --------------------------------------------------------------------------------


async def test_joining_passes_on_all_that_was_said_after_old_ones_have_made_room() -> None:
    joined = Joined(*COMMON, name="Claude", kind=ParticipantKind.API, role=JoinRole.ORCHESTRATOR, epoch=4)
    gateway = FakeGateway(joined)
    told: dict[str, Any] = {
        "kind": ParticipantKind.API,
        "role": JoinRole.ORCHESTRATOR,
        "capabilities": ["read"],
    }
    view = await ask(routes.register, gateway, ROOM, RegisterBody(agent_id="Claude", **told))

    assert gateway.done == ["silence", Join(name="Claude", **told), ("touch", "claude")]
    assert view == RegisteredView(success=True, agent_id="claude", token="claude.4", seq=50)


async def test_coming_back_keeps_the_name_and_takes_the_new_capabilities() -> None:
    known = SimpleNamespace(participants={CLAUDE: SimpleNamespace(epoch=3)})
    gateway = FakeGateway(writer=SimpleNamespace(safe_seq=50, room=known))
    view = await ask(routes.register, gateway, AGENT, RegisterBody(agent_id="x", capabilities=["read"]))

    assert gateway.done == [Rejoin(agent=CLAUDE, capabilities=["read"]), ("touch", "claude")]
    assert (view.agent_id, view.token) == ("claude", "claude.3")


def a_participant(**more: Any) -> Participant:
    values: dict[str, Any] = {
        "id": CLAUDE,
        "name": "Claude",
        "kind": ParticipantKind.CLI,
        "role": JoinRole.AGENT,
        "epoch": 1,
    }
    values |= {"capabilities": ["read"], "queue": {"a": 1, "b": 2}}
    values |= {"seen": 7.0, "share": True, "detail": "used up", "until": 9.0, "dialog": Dialog(tool="Bash")}
    return Participant(**values | more)


def with_participant(participant: Participant, *, is_benched: bool = False) -> Any:
    session = SimpleNamespace(is_benched=lambda agent: is_benched)
    sessions = SimpleNamespace(live_with=lambda agent: [session] if agent == CLAUDE else [])
    gateway = FakeGateway()
    gateway.writer.room = SimpleNamespace(participants={CLAUDE: participant}, sessions=sessions)
    return gateway


def test_a_view_of_an_agent_has_all_that_a_person_should_know() -> None:
    view = routes.agent_view(with_participant(a_participant()), CLAUDE, ROOM)

    assert (view.id, view.name, view.kind, view.role, view.capabilities) == (
        *("claude", "Claude", ParticipantKind.CLI, JoinRole.AGENT),
        ["read"],
    )
    assert (view.online, view.state, view.queued, view.last_seen) == (True, AgentState.IDLE, 2, 8.0)
    assert (view.share, view.detail, view.until) == (True, "used up", 9.0)


@pytest.mark.parametrize(
    ("caller", "is_shown"), [(ROOM, True), (AGENT, True), (Caller(CODEX, Role.ORCHESTRATOR), False)]
)
def test_what_an_agent_asks_of_a_person_is_for_the_person_and_itself(caller: Caller, is_shown: bool) -> None:
    view = routes.agent_view(with_participant(a_participant()), CLAUDE, caller)

    assert (view.dialog is not None) is is_shown


@pytest.mark.parametrize(
    ("state", "is_benched", "shown"),
    [
        (AgentState.IDLE, True, AgentState.BENCHED),
        (AgentState.BUSY, True, AgentState.BENCHED),
        (AgentState.LIMITED, True, AgentState.LIMITED),
        (AgentState.OFFLINE, True, AgentState.OFFLINE),
        (AgentState.IDLE, False, AgentState.IDLE),
    ],
)
def test_an_agent_at_rest_that_gets_no_turns_is_benched(
    state: AgentState, is_benched: bool, shown: AgentState
) -> None:
    participant = a_participant(state=state, online=state is not AgentState.OFFLINE)

    assert routes._state_of(with_participant(participant, is_benched=is_benched), participant) is shown


async def test_participants_are_listed_as_of_now() -> None:
    gateway = with_participant(a_participant())
    answer = await ask(routes.list_agents, gateway, ROOM)

    assert gateway.done == ["silence", "settled"]
    assert isinstance(answer, RawJson) and b'"id":"claude"' in answer.data


async def test_a_button_is_pressed_with_its_choice() -> None:
    sent = ControlSent(*COMMON, control=ControlVerb.APPROVE, expires=5.0)
    gateway, nothing = FakeGateway(sent), FakeGateway()
    body = ControlBody(choice=2)
    view = await ask(routes.control, gateway, ROOM, body, id="claude", verb="approve")
    none = await ask(routes.control, nothing, ROOM, body, id="claude", verb="approve")

    assert gateway.done == [ControlAgent(agent=CLAUDE, verb=ControlVerb.APPROVE, choice=2)]
    assert (view.id, view.seq, none.id) == ("e-9", 50, None)
    with pytest.raises(NotFound, match="unknown control 'dance'") as error:
        await ask(routes.control, gateway, ROOM, body, id="claude", verb="dance")
    assert "approve" in error.value.hint


# --- messages ------------------------------------------------------------------------------------


class Inboxes:
    """What waits for claude, in place of a room."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.due: list[Deliver] = []
        self.held: int | None = None
        self.gateway = FakeGateway()
        self.gateway.writer.room = "the room"
        monkeypatch.setattr(routes, "pending", self.pending)
        monkeypatch.setattr(routes, "first_held", lambda room, agent, after: self.held)
        monkeypatch.setattr(routes, "known_participant", lambda room, agent: agent)

    def pending(self, room: object, agent: str, *, after: int, upto: int) -> list[Deliver]:
        assert (room, agent, upto) == ("the room", CLAUDE, 50)
        return [one for one in self.due if one.seq > after]

    def add(self, *seqs: int) -> None:
        for seq in seqs:
            kind = DeliverKind.MESSAGE
            self.due.append(Deliver(id=f"m-{seq}", seq=seq, kind=kind, sender="a", text="b", urgent=False))

    async def read(self, after: int = 0, wait: float = 0, caller: Caller = AGENT) -> InboxView:
        params = InboxParams(after=after, wait=wait)
        found: InboxView = await ask(routes.inbox, self.gateway, caller, query=params, id="claude")
        return found


@pytest.fixture
def inboxes(monkeypatch: pytest.MonkeyPatch) -> Inboxes:
    return Inboxes(monkeypatch)


async def test_an_inbox_is_in_the_order_of_the_journal_and_comes_in_pages(
    inboxes: Inboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert routes.MAX_INBOX_ITEMS == 500
    monkeypatch.setattr(routes, "MAX_INBOX_ITEMS", 2)
    inboxes.add(9, 3, 7)
    first = await inboxes.read()
    second = await inboxes.read(first.next)
    nothing = await inboxes.read(second.next)

    assert [[one.seq for one in page.items] for page in (first, second, nothing)] == [[3, 7], [9], []]
    assert (first.next, second.next, nothing.next) == (7, 9, 9)


@pytest.mark.parametrize(("held", "place"), [(None, 9), (5, 4), (12, 9)])
async def test_no_page_leads_past_what_is_held(inboxes: Inboxes, held: int | None, place: int) -> None:
    inboxes.add(3, 9)
    inboxes.held = held

    assert (await inboxes.read()).next == place


async def test_a_poll_waits_for_news_of_its_own_and_ends_with_the_hub_or_its_token(inboxes: Inboxes) -> None:
    async def waiting() -> "asyncio.Task[InboxView]":
        poll = asyncio.create_task(inboxes.read(wait=60))
        await wait_until(lambda: CLAUDE in inboxes.gateway.broadcast._news, what="the poll")
        return poll

    poll = await waiting()
    was_present = inboxes.gateway.present_now
    inboxes.add(3)
    inboxes.gateway.broadcast.wake(CLAUDE)
    woken = await poll
    inboxes.due.clear()
    poll = await waiting()
    inboxes.gateway.is_dead = True
    inboxes.gateway.broadcast.wake(CLAUDE)
    with pytest.raises(Unauthenticated):
        await poll
    inboxes.gateway.is_dead = False
    poll = await waiting()
    inboxes.gateway.broadcast.close()

    assert (was_present, [one.seq for one in woken.items]) == (1, [3])
    assert (await poll).items == ()


async def test_an_inbox_is_read_by_its_owner_and_the_room(inboxes: Inboxes) -> None:
    inboxes.add(3)
    own, of_room = await inboxes.read(), await inboxes.read(caller=ROOM)

    assert own == of_room
    with pytest.raises(Forbidden, match="codex may not read the inbox of claude"):
        await inboxes.read(caller=Caller(CODEX, Role.ORCHESTRATOR))


# --- history -------------------------------------------------------------------------------------


class Pages:
    """The history of a room: the page that comes next, and what was asked."""

    def __init__(self) -> None:
        self.asked: list[HistoryQuery] = []
        self.lines: list[bytes] = []
        self.gateway = FakeGateway(history=SimpleNamespace(page=self.page))

    async def page(self, query: HistoryQuery) -> SimpleNamespace:
        self.asked.append(query)
        return SimpleNamespace(lines=self.lines, next=7)

    async def read(self, caller: Caller = ROOM, **params: Any) -> bytes:
        found: RawJson = await ask(routes.history, self.gateway, caller, query=HistoryParams(**params))
        return found.data


async def test_every_condition_reaches_the_history() -> None:
    pages = Pages()
    pages.lines = [b"{}", b"{}"]
    plain = await pages.read()
    told: dict[str, Any] = {"limit": 5, "after": 3, "before": 9, "session": "s-1", "q": "apple"}
    await pages.read(AGENT, agent="codex", types="vote,system", **told)

    assert plain == b'{"items":[{},{}],"next":7}'
    assert pages.asked == [
        HistoryQuery(limit=50, types=HISTORY_TYPES),
        HistoryQuery(agent=CODEX, types=frozenset({"vote", "system"}), audience=CLAUDE, **told),
    ]


async def test_only_who_reads_on_waits_for_news() -> None:
    pages = Pages()
    at_once = await pages.read(wait=60)
    poll = asyncio.create_task(pages.read(after=3, wait=60))
    await wait_until(lambda: len(pages.asked) == 2 and None in pages.gateway.broadcast._news, what="the poll")
    was_early, was_present = poll.done(), pages.gateway.present_now
    pages.lines = [b"{}"]
    pages.gateway.broadcast.wake(None)

    assert at_once == b'{"items":[],"next":7}'
    assert (was_early, was_present) == (False, 1)
    assert await poll == b'{"items":[{}],"next":7}'


@pytest.mark.parametrize("is_dead", [True, False])
async def test_a_poll_of_the_history_ends_with_its_token_or_the_hub(is_dead: bool) -> None:
    pages = Pages()
    poll = asyncio.create_task(pages.read(after=3, wait=60))
    await wait_until(lambda: pages.gateway.broadcast._news, what="the poll")
    pages.gateway.is_dead = is_dead
    pages.gateway.broadcast.close()
    if is_dead:
        with pytest.raises(Unauthenticated):
            await poll
    else:
        assert await poll == b'{"items":[],"next":7}'


# --- the room ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("is_writable", "damaged", "status"),
    [
        (True, (), "ok"),
        (True, (3,), "damaged"),
        (False, (), "read-only"),
        (False, (3,), "read-only"),
    ],
)
async def test_the_health_of_a_room(
    monkeypatch: pytest.MonkeyPatch, is_writable: bool, damaged: tuple[int, ...], status: str
) -> None:
    monkeypatch.setattr(routes, "boards_health", lambda boards, limit: None)
    people = {"claude": SimpleNamespace(online=True), "codex": SimpleNamespace(online=False)}
    gateway: Any = SimpleNamespace(
        writer=SimpleNamespace(
            room=SimpleNamespace(participants=people, boards={}),
            journal=SimpleNamespace(room_id="r-1"),
            is_writable=is_writable,
            is_leading=True,
            safe_seq=50,
        ),
        journal_health=JournalHealth(writable=True, scrub="done", checked=4, damaged=damaged),
        has_lost_log=False,
        settings=SimpleNamespace(room="default"),
        clock=lambda: 12.5,
        started=10.0,
        sockets={1, 2, 3},
        rules=SimpleNamespace(board_max_bytes=0),
    )
    view: HealthView = await ask(routes.health, gateway, ROOM)

    assert (view.status, view.journal.writable, view.journal.checked) == (status, is_writable, 4)
    assert (view.room, view.seq, view.uptime_s, view.agents, view.watchers) == ("default", 50, 2.5, 1, 3)
    assert (view.room_id, view.replica) == ("r-1", False)
