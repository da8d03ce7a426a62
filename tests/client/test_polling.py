"""Polling by itself: what is asked, from where, in which order."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from csp.client import polling as polling_module
from csp.client.inbox import Inbox
from csp.client.incoming_frames import CallAnswer
from csp.client.outbox import Outbox
from csp.client.polling import PATHS, TYPES, WAIT_S, Polling
from csp.errors import NotFound, Refused, Unreachable
from csp.protocol.enums import AgentId, DeliverKind
from csp.protocol.requests import WatchBody, WorkingBody
from csp.protocol.responses import Deliver, InboxView
from tests.gateway.test_broadcast import event

ADA = AgentId("ada-1")


class Enough(Exception):
    """The script of the gateway is over."""


class FakeHttp:
    """Answers GETs and POSTs from a script; notes what was asked."""

    url = "http://room"

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []
        self.seqs = iter(range(50, 100))

    async def seq(self) -> int:
        return next(self.seqs)

    async def get(self, kind: Any, path: str, wait_s: float = 0, **query: Any) -> Any:
        self.asked.append((path, wait_s, query))
        return self._next()

    async def post(self, kind: Any, path: str, body: bytes) -> Any:
        self.asked.append((path, body))
        return self._next()

    def _next(self) -> Any:
        if not self.answers:
            raise Enough
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def polling_of(http: FakeHttp, after: int | None = 3) -> tuple[Polling, Inbox, Outbox]:
    inbox, outbox = Inbox(after, ADA), Outbox()
    return Polling(http, inbox, outbox, ADA), inbox, outbox  # type: ignore[arg-type]  # it has what is used


def page(*seqs: int) -> SimpleNamespace:
    return SimpleNamespace(items=[event(seq)[1] for seq in seqs])


def deliver(seq: int) -> Deliver:
    return Deliver(id=f"m-{seq}", seq=seq, kind=DeliverKind.MESSAGE, sender="human", text="x", urgent=False)


async def test_events_are_asked_for_after_the_last_one_and_nonsense_is_passed_over() -> None:
    odd = SimpleNamespace(items=[b"odd", event(9)[1]])
    http = FakeHttp(page(4, 6), odd, page(), page())
    polling, inbox, _ = polling_of(http)
    with pytest.raises(Enough):
        await polling._poll_events(40)

    assert [query["after"] for _, _, query in http.asked] == [3, 6, 9, 40, 50]
    assert http.asked[0] == ("/history", WAIT_S, {"after": 3, "limit": 100, "types": TYPES})
    assert (inbox.taken, inbox.last_seq) == (3, 50)


async def test_a_full_inbox_is_not_filled_further(monkeypatch: pytest.MonkeyPatch) -> None:
    http = FakeHttp(page(4))
    polling, inbox, _ = polling_of(http)
    inbox._drained.clear()
    work = asyncio.ensure_future(polling._poll_events(40))
    for _ in range(5):
        await asyncio.sleep(0)
    before = len(http.asked)
    inbox._drained.set()
    with pytest.raises(Enough):
        await work

    assert before == 0


async def test_deliveries_are_asked_for_from_where_the_last_page_ended_and_now_and_then_from_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    views = [InboxView(items=(deliver(5),), next=5), InboxView(items=(), next=5), InboxView(items=(), next=5)]
    http = FakeHttp(*views)
    polling, inbox, _ = polling_of(http)
    loop = asyncio.get_running_loop()
    times = iter([0.0, 10.0, 26.0, 26.0, 30.0])
    monkeypatch.setattr(loop, "time", lambda: next(times, 30.0))
    work = polling._poll_delivers(ADA)
    with pytest.raises(Enough):
        work.send(None)

    assert [(path, query["after"]) for path, _, query in http.asked] == [
        *(("/inbox/ada-1", after) for after in (0, 5, 0, 5)),
    ]
    assert inbox.taken == 1


@pytest.mark.parametrize(("name", "path"), PATHS.items())
async def test_each_operation_has_its_own_address(name: str, path: str) -> None:
    http = FakeHttp(CallAnswer(seq=4))
    polling, _, outbox = polling_of(http)
    asking = asyncio.ensure_future(outbox.ask(name, WorkingBody(note="soon")))
    await asyncio.sleep(0)
    answer = await polling._ask(await outbox.next())
    asking.cancel()

    assert (answer.seq, http.asked) == (4, [(path, b'{"note":"soon"}')])


async def test_a_refusal_is_the_callers_and_a_loss_ends_the_connection() -> None:
    http = FakeHttp(NotFound("unknown", "look"), Unreachable("gone"))
    polling, _, outbox = polling_of(http)
    for _ in range(2):
        asyncio.ensure_future(outbox.ask("message", WorkingBody()))  # noqa: RUF006
    await asyncio.sleep(0)
    refused = await polling._ask(await outbox.next())

    assert (refused.error, refused.hint, refused.status) == ("unknown", "look", 404)
    with pytest.raises(Unreachable, match="gone"):
        await polling._ask(await outbox.next())
    outbox.close(Refused("over"))


async def test_screens_need_a_websocket() -> None:
    http = FakeHttp()
    polling, _, outbox = polling_of(http)
    asking = asyncio.ensure_future(outbox.ask("watch", WatchBody(screen="codex")))
    await asyncio.sleep(0)
    answer = await polling._ask(await outbox.next())
    asking.cancel()

    assert (answer.status, http.asked) == (409, [])
    assert answer.error == "watch needs a WebSocket, and none gets through to http://room"


async def test_polling_goes_on_until_a_link_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polling_module, "FIRST_PROBE_S", 0.0)
    link: Any = object()
    forever = asyncio.get_running_loop().create_future()
    tries: list[Any] = [Unreachable("not yet"), None, link]
    http = FakeHttp()
    polling, _, outbox = polling_of(http)
    rewound: list[bool] = []
    monkeypatch.setattr(outbox, "rewind", lambda: rewound.append(True))

    async def get(kind: Any, path: str, wait_s: float = 0, **query: Any) -> Any:
        http.asked.append(path)
        await forever

    async def probe() -> Any:
        found = tries.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(http, "get", get)

    assert await polling.run(40, probe) is link
    assert (sorted(http.asked), rewound, tries) == (["/history", "/inbox/ada-1"], [True], [])


async def test_what_the_gateway_has_against_a_client_is_told_at_once() -> None:
    http = FakeHttp(NotFound("no"))
    polling, _, _ = polling_of(http)
    with pytest.raises(NotFound):
        await polling.try_out()

    assert http.asked == [("/history", 0, {"limit": 1})]


async def test_the_room_itself_has_no_inbox_and_looks_for_no_link_unless_it_is_told_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    http = FakeHttp()
    polling = Polling(http, Inbox(3, None), Outbox(), None)  # type: ignore[arg-type]  # it has what is used
    begun: list[int] = []

    async def until_first(*works: Any) -> None:
        begun.append(len(works))
        for work in works:
            work.close()

    monkeypatch.setattr(polling_module, "until_first", until_first)
    await polling.run(40, None)

    assert begun == [2]


async def test_operations_are_sent_one_after_the_other_and_answered() -> None:
    http = FakeHttp(CallAnswer(seq=4), CallAnswer(seq=5))
    polling, _, outbox = polling_of(http)
    asking = [asyncio.ensure_future(outbox.ask("message", WorkingBody(note=note))) for note in ("a", "b")]
    await asyncio.sleep(0)
    sending = asyncio.ensure_future(polling._send())

    assert [(await one).seq for one in asking] == [4, 5]
    assert [body for _, body in http.asked] == [b'{"note":"a"}', b'{"note":"b"}']
    sending.cancel()


def test_polling_carries_what_the_history_shows_and_what_a_session_needs() -> None:
    said = {"agent_call", "agent_response", "human_message", "system", "vote"}

    assert set(TYPES.split(",")) == said | {"activity", "late", "mode", "note", "turn_signal"}
