"""How a connection is kept up: when it is tried again, when it is given up."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from csp.client import connection as connection_module
from csp.client.connection import Connection, Status
from csp.client.http_calls import HttpCalls, RoomPlace
from csp.client.inbox import Inbox
from csp.client.outbox import Outbox
from csp.client.websocket_link import _loss
from csp.errors import CspError, Forbidden, NotFound, StorageFull, Unauthenticated, Unreachable
from csp.protocol.screen_frames import LiveBody


class Trial:
    """A connection whose every stay ends as the test says, in a time that nobody waits for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.statuses: list[Status] = []
        self.slept: list[float] = []
        self.now = 1000.0
        self.give_up_s: float | None = None
        self.http = HttpCalls("http://127.0.0.1:1", "token")
        self.urls: list[str] = []
        self.inbox = Inbox(0, None)
        self._patch = monkeypatch

    def connection(self) -> Connection:
        return Connection(self.http, self.inbox, Outbox(), self.statuses.append, self.give_up_s)

    async def run(self, *stays: Callable[[Connection], CspError]) -> CspError:
        """Run until the stays are used up, or until it gives up; return what it gave up with."""
        connection, left = self.connection(), list(stays)

        async def stay() -> None:
            if not left:
                connection._refusals = len(self.http)
                raise Unauthenticated("the end of the test")
            self.urls.append(self.http.url)
            raise left.pop(0)(connection)

        async def sleep(delay_s: float) -> None:
            self.slept.append(delay_s)
            self.now += delay_s

        self._patch.setattr(connection, "_stay", stay)
        self._patch.setattr("csp.client.connection.asyncio.sleep", sleep)
        self._patch.setattr(asyncio.get_running_loop(), "time", lambda: self.now)
        self._patch.setattr(connection._backoff, "next_s", self._next_s)
        self._patch.setattr(connection._backoff, "reset", self._reset)
        self._tries = 0
        try:
            await connection.run()
        except CspError as error:
            return error
        finally:
            self._patch.undo()
        raise AssertionError

    def _next_s(self) -> float:
        self._tries += 1
        return float(self._tries)

    def _reset(self) -> None:
        self._tries = 0

    def fails(self, connection: Connection) -> CspError:
        return Unreachable("nobody there")

    def lasts(self, lasted_s: float, taken: int = 0) -> Callable[[Connection], CspError]:
        def stay(connection: Connection) -> CspError:
            connection._tell(Status(is_connected=True))
            self.now += lasted_s
            self.inbox.taken += taken
            return Unreachable("lost")

        return stay


@pytest.fixture
def trial(monkeypatch: pytest.MonkeyPatch) -> Trial:
    return Trial(monkeypatch)


async def test_waits_grow_while_nobody_answers(trial: Trial) -> None:
    await trial.run(*[trial.fails] * 4)

    assert trial.slept == [1.0, 2.0, 3.0, 4.0]


async def test_waits_begin_again_after_a_connection_that_lasted(trial: Trial) -> None:
    await trial.run(trial.fails, trial.fails, trial.lasts(5.1), trial.lasts(4.9), trial.fails)

    assert trial.slept == [1.0, 2.0, 1.0, 2.0, 3.0]


async def test_waits_begin_again_after_a_connection_that_carried_something(trial: Trial) -> None:
    await trial.run(trial.fails, trial.fails, trial.lasts(0.1, taken=1), trial.fails)

    assert trial.slept == [1.0, 2.0, 1.0, 2.0]


async def test_each_change_is_told_once(trial: Trial) -> None:
    await trial.run(trial.fails, trial.fails, trial.lasts(1.0), trial.fails)

    nobody, lost = Status(why="nobody there"), Status(why="lost")
    there = Status(is_connected=True)
    assert trial.statuses == [nobody, there, lost, nobody, Status(why="the end of the test")]


async def test_a_client_gives_up_after_so_long_in_vain(trial: Trial) -> None:
    trial.give_up_s = 5.0

    error = await trial.run(*[trial.fails] * 10)

    assert str(error) == "nobody there"
    assert trial.slept == [1.0, 2.0, 3.0]


async def test_time_in_vain_begins_with_the_loss_of_the_last_connection(trial: Trial) -> None:
    trial.give_up_s = 5.0

    await trial.run(trial.fails, trial.fails, trial.lasts(100.0), *[trial.fails] * 10)

    assert trial.slept == [1.0, 2.0, 1.0, 2.0, 3.0]


async def test_a_client_that_is_not_told_to_never_gives_up(trial: Trial) -> None:
    error = await trial.run(*[trial.fails] * 50)

    assert str(error) == "the end of the test"


@pytest.mark.parametrize("kind", [Unauthenticated, Forbidden])
async def test_a_refusal_of_the_gateway_is_the_end(trial: Trial, kind: type[CspError]) -> None:
    error = await trial.run(lambda connection: kind("no"), trial.fails)

    assert (str(error), trial.slept) == ("no", [])


# --- several gateways ----------------------------------------------------------------------------


@pytest.fixture
def several(trial: Trial) -> Trial:
    trial.http = HttpCalls("http://a:1,http://b:1, http://c:1/,http://a:1", "token")
    return trial


async def test_the_next_gateway_is_tried_at_once_and_a_pause_follows_each_round(several: Trial) -> None:
    await several.run(*[several.fails] * 7)

    assert "".join(url.removeprefix("http://")[0] for url in several.urls) == "abcabca"
    assert several.slept == [1.0, 2.0]


async def test_the_loss_of_a_gateway_begins_a_new_round(several: Trial) -> None:
    await several.run(several.fails, several.lasts(5.1), several.fails, several.fails, several.fails)

    assert [url.removeprefix("http://")[0] for url in several.urls] == [*"abcab"]
    assert several.slept == [1.0]


async def test_gateways_that_are_lost_again_and_again_are_not_asked_without_a_pause(several: Trial) -> None:
    await several.run(*[several.lasts(0.1)] * 6)

    assert several.slept == [1.0, 2.0]


@pytest.mark.parametrize("kind", [Unauthenticated, Forbidden])
async def test_one_of_several_gateways_may_not_know_the_token_yet(
    several: Trial, kind: type[CspError]
) -> None:
    error = await several.run(lambda connection: kind("unknown"), several.lasts(1.0), several.fails)

    assert str(error) == "the end of the test"


async def test_a_refusal_of_all_gateways_is_the_end(several: Trial) -> None:
    def refuses(connection: Connection) -> CspError:
        return Unauthenticated("no")

    error = await several.run(refuses, several.fails, refuses, refuses, several.fails)

    assert (str(error), len(several.urls)) == ("no", 4)


async def test_the_patience_with_several_gateways_doubles_with_each_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connection, _, done = staying(monkeypatch, urls="http://a:1,http://b:1")
    for connection._rounds in (0, 1, 2, 5):
        with pytest.raises(Unreachable, match="lost"):
            await connection._stay()

    assert [step[1] for step in done if step[0] == "place"] == [1.0, 2.0, 4.0, 20.0]
    assert [step[2] for step in done if step[0] == "open"] == [1.0, 2.0, 4.0, 32.0]


# --- a stay --------------------------------------------------------------------------------------


class FakeLink:
    """A link that is lost as soon as it runs."""

    def __init__(self, done: list[Any]) -> None:
        self._done = done

    async def run(self, inbox: Inbox, outbox: Outbox, screens: list[str]) -> None:
        self._done.append(("run", screens))
        raise Unreachable("lost")

    async def show(self, body: LiveBody) -> None:
        self._done.append(("show", body))

    async def close(self) -> None:
        self._done.append("closed")


def staying(
    monkeypatch: pytest.MonkeyPatch, after: int | None = 7, urls: str = "http://127.0.0.1:1"
) -> tuple[Connection, Trial, list[Any]]:
    """Return a connection whose link opens, and what it does."""
    trial, done = Trial(monkeypatch), list[Any]()
    trial.http = HttpCalls(urls, "token")
    trial.inbox = Inbox(after, None)
    connection = trial.connection()

    async def place(timeout_s: float) -> RoomPlace:
        done.append(("place", timeout_s))
        return RoomPlace(seq=50)

    async def open_link(http: HttpCalls, after: int, patience_s: float) -> FakeLink:
        done.append(("open", after, patience_s))
        return FakeLink(done)

    monkeypatch.setattr(trial.http, "place", place)
    monkeypatch.setattr(connection_module, "open_link", open_link)
    connection.screens = {"codex": None}
    return connection, trial, done


async def test_a_websocket_carries_everything_where_one_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    connection, trial, done = staying(monkeypatch, after=None)
    with pytest.raises(Unreachable, match="lost"):
        await connection._stay()

    assert done == [("place", 20.0), ("open", 50, 20.0), ("run", ["codex"]), "closed"]
    assert trial.statuses == [Status(is_connected=True)]
    assert connection._link is None


async def test_what_matters_only_now_needs_a_websocket(monkeypatch: pytest.MonkeyPatch) -> None:
    connection, _, done = staying(monkeypatch)
    body = LiveBody(text="so far")
    shown = [await connection.show(body)]
    connection._link = FakeLink(done)  # type: ignore[assignment]  # it has what is used
    for status in (Status(why="lost"), Status(is_connected=True)):
        connection.status = status
        shown.append(await connection.show(body))

    assert (shown, done) == ([False, False, True], [("show", body)])


async def test_an_answer_counts_as_something_carried(trial: Trial) -> None:
    connection = trial.connection()
    before = connection._progress
    connection._outbox.settled += 1

    assert connection._progress != before


async def test_a_client_that_is_closed_says_so_to_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    connection, trial, _ = staying(monkeypatch)

    async def stay() -> None:
        connection._tell(Status(is_connected=True))
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(connection, "_stay", stay)
    running = asyncio.ensure_future(connection.run())
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait([running], timeout=60)

    assert connection.status == Status(why="the client is closed")
    # Nobody has to be told: it was its own doing.
    assert trial.statuses == [Status(is_connected=True)]


# --- what a loss means ---------------------------------------------------------------------------


class Closed(Exception):
    """Stands for the library's own exception: what the other side said when it closed."""

    def __init__(self, rcvd: object) -> None:
        self.rcvd = rcvd


class Said:
    def __init__(self, code: int, reason: str) -> None:
        self.code, self.reason = code, reason


@pytest.mark.parametrize(
    ("rcvd", "kind", "text"),
    [
        (None, Unreachable, "the connection to the gateway was lost"),
        (Said(1001, "going away"), Unreachable, "the gateway closed the connection: going away"),
        (Said(1006, ""), Unreachable, "the gateway closed the connection: 1006"),
        (Said(4001, "removed"), Unauthenticated, "removed"),
        (Said(4001, ""), Unauthenticated, "this token is no longer valid"),
    ],
)
def test_a_loss_is_told_as_what_it_means(rcvd: object, kind: type[CspError], text: str) -> None:
    error = _loss(Closed(rcvd))  # type: ignore[arg-type]  # it has what is looked at

    assert (type(error), error.message) == (kind, text)


def test_statuses_are_raised_as_what_they_are() -> None:
    from csp.client.incoming_frames import read_error

    kinds = {404: NotFound, 507: StorageFull, 401: Unauthenticated, 503: Unreachable}
    for status, kind in kinds.items():
        error = read_error(status, b'{"error": "what", "hint": "why"}', "http://x")

        assert (type(error), error.message, error.hint) == (kind, "what", "why")
    assert "but is not a gateway" in read_error(404, b"<html>", "http://x").message
