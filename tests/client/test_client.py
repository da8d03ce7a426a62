"""What a client makes of each call: every word reaches the operation, every field comes back."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from csp.client import Client
from csp.client.client import CLOSE_S
from csp.client.connection import Status
from csp.client.http_calls import HttpCalls
from csp.client.incoming_frames import CallAnswer
from csp.errors import Broken, CspError, Refused, Unauthenticated
from csp.protocol.codec import encode
from csp.protocol.enums import Ending, JoinRole, ParticipantKind, ReportedAgentState, ReportedState
from csp.protocol.requests import (
    DeliveryBody,
    Dialog,
    Handoff,
    MessageBody,
    OutputBody,
    RegisterBody,
    StateBody,
    Usage,
    WatchBody,
    WorkingBody,
)
from csp.protocol.responses import RegisteredView
from csp.protocol.screen_frames import LiveBody

URL = "http://127.0.0.1:9"
Ask = Callable[[Client], Awaitable[object]]


class Asked:
    """A client that is started without a network; what it asks is noted and answered."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, token: str = "token", **options: Any) -> None:
        self.all: list[tuple[str, Any, str]] = []
        self.answer = CallAnswer(
            id="m-1", seq=7, recipients=("codex",), late=True, posted=False, extended=True
        )
        self.error: CspError | None = None
        self.client = Client(URL, token, **options)
        monkeypatch.setattr(self.client, "_task", asyncio.get_running_loop().create_future())
        monkeypatch.setattr(self.client._outbox, "ask", self._ask)

    async def _ask(self, name: str, body: Any, subject: str = "") -> CallAnswer:
        self.all.append((name, body, subject))
        if self.error is not None:
            raise self.error
        return self.answer


USAGE, HANDOFF, DIALOG = Usage(input=3), Handoff(to="codex", task="go on"), Dialog(tool="Bash")
CALLS: dict[str, tuple[Ask, tuple[str, Any, str]]] = {
    "send": (
        lambda client: client.send("all", "hi", thread="side", reply_to="m-2", urgent=True, id="k"),
        (
            "message",
            MessageBody(to="all", content="hi", thread="side", reply_to="m-2", urgent=True, id="k"),
            "",
        ),
    ),
    "output": (
        lambda client: client.output(
            *("text",),
            turn="t-1",
            reply_to="m-2",
            handoff=HANDOFF,
            final=True,
            usage=USAGE,
            thread="side",
            id="k",
            activity=True,
            local=True,
            ending=Ending.FAILED,
            reason="why",
        ),
        (
            "output",
            OutputBody(
                content="text",
                turn="t-1",
                reply_to="m-2",
                handoff=HANDOFF,
                final=True,
                usage=USAGE,
                thread="side",
                id="k",
                activity=True,
                local=True,
                ending=Ending.FAILED,
                reason="why",
            ),
            "",
        ),
    ),
    "report": (
        lambda client: client.report("m-2", ReportedState.FAILED, "why", agent="codex"),
        (
            "delivery",
            DeliveryBody(id="m-2", state=ReportedState.FAILED, reason="why", agent="codex"),
            "codex:m-2",
        ),
    ),
    "control": (
        lambda client: client.control_done("m-2", ReportedState.FAILED, "why"),
        ("control_done", DeliveryBody(id="m-2", state=ReportedState.FAILED, reason="why"), ":m-2"),
    ),
    "control confirmed": (
        lambda client: client.control_done("m-2"),
        ("control_done", DeliveryBody(id="m-2", state=ReportedState.CONFIRMED), ":m-2"),
    ),
    "state": (
        lambda client: client.state(ReportedAgentState.LIMITED, "used up", 9.0, DIALOG),
        (
            "state",
            StateBody(state=ReportedAgentState.LIMITED, detail="used up", until=9.0, dialog=DIALOG),
            "",
        ),
    ),
    "working": (lambda client: client.working("soon"), ("working", WorkingBody(note="soon"), "")),
    "watch": (lambda client: client.watch_screen("codex"), ("watch", WatchBody(screen="codex"), "")),
    "unwatch": (lambda client: client.unwatch_screen("codex"), ("unwatch", WatchBody(screen="codex"), "")),
}


@pytest.mark.parametrize("name", CALLS)
async def test_every_word_of_a_call_reaches_its_operation(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    call, expected = CALLS[name]
    asked = Asked(monkeypatch)
    await call(asked.client)

    assert asked.all == [expected]


async def test_every_field_of_an_answer_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch)
    sent = await asked.client.send("all", "hi")
    again = await asked.client.send("all", "hi")

    assert (sent.id, sent.seq, sent.recipients, sent.late, sent.posted) == ("m-1", 7, ("codex",), True, False)
    assert await asked.client.working() is True
    assert sent == again
    first, second = (body.id for _, body, _ in asked.all[:2])
    assert first and second and first != second


async def test_registering_tells_all_that_it_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    posted: list[Any] = []

    async def post(self: Any, kind: type, path: str, body: bytes) -> RegisteredView:
        posted.append((self.url, self.token, path, body))
        return RegisteredView(success=True, agent_id="ada", token="t", seq=4)

    monkeypatch.setattr(HttpCalls, "post", post)
    found = await Client.register(
        URL, "room", "Ada", kind=ParticipantKind.API, role=JoinRole.ORCHESTRATOR, capabilities=["read"]
    )
    body = RegisterBody(
        agent_id="Ada", kind=ParticipantKind.API, role=JoinRole.ORCHESTRATOR, capabilities=["read"]
    )

    assert (found.agent, found.token, found.seq) == ("ada", "t", 4)
    assert posted == [(URL, "room", "/register", encode(body))]


async def test_options_reach_the_connection() -> None:
    plain = Client(URL, "token")._connection
    told = Client(URL, "token", give_up_s=3.0)._connection

    assert (plain.give_up_s, told.give_up_s, CLOSE_S) == (None, 3.0, 5.0)
    assert Client(URL, "token", after=6).seq == 6


@pytest.mark.parametrize(
    ("call", "is_ended"),
    [
        (lambda client: client.report("m-2", ReportedState.CONFIRMED), True),
        (lambda client: client.report("m-2", ReportedState.FAILED), True),
        (lambda client: client.report("m-2", ReportedState.TYPED), False),
        (lambda client: client.control_done("m-2"), True),
        (lambda client: client.output("text", reply_to="m-2"), True),
        (lambda client: client.output("text"), False),
    ],
)
async def test_a_delivery_is_forgotten_once_its_end_is_told(
    monkeypatch: pytest.MonkeyPatch, call: Ask, is_ended: bool
) -> None:
    asked = Asked(monkeypatch)
    ended: list[str] = []
    monkeypatch.setattr(asked.client._inbox, "end", ended.append)
    await call(asked.client)
    asked.error = Refused("no")
    with pytest.raises(Refused):
        await call(asked.client)

    assert ended == ["m-2"] * is_ended


async def test_a_screen_is_watched_over_later_connections_unless_it_was_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Asked(monkeypatch)
    screens = asked.client._connection.screens
    await asked.client.watch_screen("claude")
    await asked.client.watch_screen("codex")
    await asked.client.unwatch_screen("claude")
    asked.error = Refused("no")
    with pytest.raises(Refused):
        await asked.client.watch_screen("gemini")

    assert list(screens) == ["codex"]


async def test_a_screen_and_a_text_are_shown_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch)
    shown: list[LiveBody] = []

    async def show(body: LiveBody) -> bool:
        shown.append(body)
        return True

    monkeypatch.setattr(asked.client._connection, "show", show)

    assert await asked.client.show(text="so far") is True
    assert shown == [LiveBody(text="so far")]


async def test_the_first_connection_lets_go_of_who_waits_for_it_and_each_change_is_told() -> None:
    seen: list[Status] = []
    client = Client(URL, "token", on_status=seen.append)
    client._first = asyncio.get_running_loop().create_future()
    lost, there = Status(why="no"), Status(is_connected=True)
    client._on_change(lost)
    was_done = client._first.done()
    client._on_change(there)
    client._on_change(there)
    await client.connected()

    assert (was_done, seen) == (False, [lost, there, there])


@pytest.mark.parametrize(
    ("error", "kind"), [(Unauthenticated("dead"), Unauthenticated), (ValueError("odd"), Broken)]
)
async def test_what_ends_the_connection_is_raised_wherever_somebody_waits(
    error: Exception, kind: type[CspError]
) -> None:
    client = Client(URL, "token")
    client._first = asyncio.get_running_loop().create_future()
    task: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    task.set_exception(error)
    client._task = task  # type: ignore[assignment]  # it has what is used
    client._on_end(task)  # type: ignore[arg-type]  # it has what is used

    with pytest.raises(kind):
        await client.connected()
    with pytest.raises(kind):
        await client.send("all", "hi")
    with pytest.raises(kind):
        await anext(client)
