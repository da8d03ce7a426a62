"""Requests that are odd above the body: headers, query strings, paths, the protocol itself."""

import asyncio
import gzip
import socket

import pytest
from aiohttp.http_parser import DeflateBuffer

from tests.gateway import raw
from tests.gateway.served import ServedRoom
from tests.waiting import wait_until

BAD_QUERIES = [
    "limit=0",
    "limit=1001",
    "limit=-1",
    "limit=ten",
    "limit=1.5",
    "limit=",
    "limit=99999999999999999999999999",
    "after=-1",
    "after=x",
    "after=1e3x",
    "after=9007199254740993",
    "before=-5",
    "session=a%20b",
    "session=",
    "types=",
    "types=A",
    "types=system,,vote",
    "types=" + "a" * 33,
    "types=" + ",".join(["system"] * 100),
    "agent=" + "a" * 129,
    "q=" + "a" * 1001,
    "wait=-1",
    "wait=61",
    "wait=NaN",
    "wait=inf",
    "wait=soon",
]
ODD_QUERIES = [
    "q=%ff",
    "q=%ed%a0%80",
    "q=%00",
    "q=%22",
    "q=%22%20OR%20%22",
    "q=*",
    "q=a*",
    "q=-a",
    "q=(",
    "q=%e2%80%a8",
    "q=%F0%9F%98%80",
    "q=NEAR(a b)".replace(" ", "%20"),
    "q=" + "a%20" * 300,
    "agent=%ff",
    "agent=%00",
    "agent=%ed%a0%80",
    "types=nothing",
    "session=s-1",
    "unknown=1",
    "q=1&q=2",
    "after=0&before=0",
    "after=5&before=2",
    "&&&",
    "%",
    "=",
]


@pytest.mark.parametrize("query", BAD_QUERIES)
async def test_a_query_that_makes_no_sense_is_400(room: ServedRoom, query: str) -> None:
    answer = await raw.exchange(
        room.port, raw.request("GET", f"/history?{query}", f"X-Auth-Token: {room.token}")
    )

    assert answer.status == 400
    assert answer.is_refusal


@pytest.mark.parametrize("is_indexed", [True, False])
async def test_no_query_is_our_failure(room: ServedRoom, is_indexed: bool) -> None:
    claude = await room.join("claude")
    await room.send("claude", "a text with a word in it, and \"quotes\" ('x')")
    if is_indexed:
        room.gateway.index.catch_up()

    for query in ODD_QUERIES:
        for token in (room.token, claude.token):
            sent = raw.request("GET", f"/history?{query}", f"X-Auth-Token: {token}")
            answer = await raw.exchange(room.port, sent)
            assert answer.status == 200 or answer.is_refusal, (query, answer)


async def test_the_longest_search_fits_into_a_request(room: ServedRoom) -> None:
    await room.send("all", "😀" * 1000)

    found = await room.history("?q=" + "%F0%9F%98%80" * 1000)

    assert len(found) == 1


@pytest.mark.parametrize("query", ["after=-1", "after=x", "wait=61", "wait=x", "after=1&wait=nan"])
async def test_a_bad_query_of_an_inbox_is_400(room: ServedRoom, query: str) -> None:
    claude = await room.join("claude")

    answer = await room.call("GET", f"/inbox/claude?{query}", token=claude.token)

    assert answer.status == 400
    assert answer.is_refusal


@pytest.mark.parametrize("query", ["after=-1", "after=x", "after=99999999999999999999"])
async def test_a_bad_query_of_the_websocket_is_400(room: ServedRoom, query: str) -> None:
    answer = await room.call("GET", f"/ws?{query}")

    assert answer.status == 400
    assert answer.is_refusal


async def test_the_websocket_route_without_an_upgrade_is_400(room: ServedRoom) -> None:
    answer = await room.call("GET", "/ws")

    assert answer.status == 400
    assert answer.is_refusal


@pytest.mark.parametrize(
    "path",
    [
        "/agents/%ff",
        "/agents/%ed%a0%80",
        "/agents/%00",
        "/agents/%0d%0aX: y".replace(" ", "%20"),
        "/agents/" + "a" * 5000,
        "/agents/%2f..%2f",
        "/agents/%zz",
    ],
)
@pytest.mark.parametrize("method", ["DELETE", "GET", "POST"])
async def test_a_path_that_names_nobody_is_refused(room: ServedRoom, method: str, path: str) -> None:
    sent = raw.request(method, path, f"X-Auth-Token: {room.token}", "Content-Length: 0")
    answer = await raw.exchange(room.port, sent)

    assert answer.is_refusal, answer
    assert answer.status in (404, 405)


@pytest.mark.parametrize("path", ["/messages/%ff", "/messages/%00", "/messages/%22%27"])
async def test_a_message_that_is_none_is_404(room: ServedRoom, path: str) -> None:
    await room.send("all", "hello")

    for method, rest in (("GET", ""), ("POST", "/cancel"), ("POST", "/redact"), ("POST", "/resend")):
        sent = raw.request(method, path + rest, f"X-Auth-Token: {room.token}", "Content-Length: 0")
        answer = await raw.exchange(room.port, sent)

        assert answer.status == 404
        assert answer.is_refusal


@pytest.mark.parametrize(
    "garbage",
    [
        b"nonsense\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /agents/\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"BREW /agents HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n: nameless\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nBad Name: x\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: %b\r\n\r\n" % (b"x" * 100_000),
        b"GET /%b HTTP/1.1\r\nHost: localhost\r\n\r\n" % (b"x" * 100_000),
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Null: \x00\r\n\r\n",
        b"POST /message HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        b"POST /message HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /message HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /message HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x00" * 100 + b"\r\n\r\n",
    ],
)
async def test_what_is_no_http_is_refused_and_forgotten(room: ServedRoom, garbage: bytes) -> None:
    answer = await raw.exchange(room.port, garbage)

    assert 400 <= answer.status < 500
    assert b"Traceback" not in answer.raw
    assert (await room.get("/health"))["status"] == "ok"


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "GZIP", "gzip, gzip", "nonsense", ""])
@pytest.mark.parametrize("token", ["", "X-Auth-Token: {}"])
async def test_a_compressed_body_is_refused_unread(room: ServedRoom, encoding: str, token: str) -> None:
    body = gzip.compress(b" " * 2**20)
    headers = [f"Content-Encoding: {encoding}", *([token.format(room.token)] if token else [])]

    answer = await raw.exchange(room.port, raw.post("/message", body, *headers))

    assert answer.status == 415
    assert answer.is_refusal


async def test_a_body_that_is_called_plain_is_read(room: ServedRoom) -> None:
    await room.join("claude")
    body = b'{"to": "claude", "content": "hello"}'
    headers = [f"X-Auth-Token: {room.token}", "Content-Encoding: identity"]

    assert (await raw.exchange(room.port, raw.post("/message", body, *headers))).status == 200


async def test_nothing_is_inflated(room: ServedRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request without a token could stop the room for as long as it takes to inflate 200 MB."""
    inflated: list[bytes] = []
    monkeypatch.setattr(DeflateBuffer, "feed_data", lambda self, chunk, *_: inflated.append(chunk))
    bomb = gzip.compress(bytes(64 * 2**20))

    answer = await raw.exchange(room.port, raw.post("/message", bomb, "Content-Encoding: gzip"))

    assert (answer.status, inflated) == (415, [])


async def test_a_chunk_that_is_none_is_refused(room: ServedRoom) -> None:
    head = raw.request("POST", "/message", f"X-Auth-Token: {room.token}", "Transfer-Encoding: chunked")

    answer = await raw.exchange(room.port, head + b"zz\r\nnonsense\r\n0\r\n\r\n")

    assert 400 <= answer.status < 500


async def test_a_caller_that_waits_for_a_go_on_gets_it(room: ServedRoom) -> None:
    await room.join("claude")
    body = b'{"to": "claude", "content": "hello"}'
    head = [f"X-Auth-Token: {room.token}", "Expect: 100-continue", f"Content-Length: {len(body)}"]
    reader, writer = await asyncio.open_connection("127.0.0.1", room.port)
    writer.write(raw.request("POST", "/message", *head))
    go_on = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), raw.TIMEOUT_S)
    writer.write(body)
    answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), raw.TIMEOUT_S)
    writer.close()
    await writer.wait_closed()

    assert go_on.startswith(b"HTTP/1.1 100 ")
    assert answer.startswith(b"HTTP/1.1 200 ")


async def test_any_other_expectation_is_passed_over(room: ServedRoom) -> None:
    answer = await raw.exchange(room.port, raw.request("GET", "/health", "Expect: the-unexpected"))

    assert (answer.status, answer.data["status"]) == (200, "ok")


async def test_a_token_that_dies_while_its_body_is_on_the_way_is_dead(room: ServedRoom) -> None:
    claude = await room.join("claude")
    sent = raw.post("/message", b'{"to": "human", "content": "hello"}', f"X-Auth-Token: {claude.token}")
    reader, writer = await asyncio.open_connection("127.0.0.1", room.port)
    writer.write(sent[:-5])
    # Its head has been read when it counts as a sign of life.
    await wait_until(lambda: room.gateway.metrics.requests[201] == 1)
    await room.call("DELETE", "/agents/claude")
    writer.write(sent[-5:])
    answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), raw.TIMEOUT_S)
    writer.close()
    await writer.wait_closed()

    assert answer.startswith(b"HTTP/1.1 401 ")
    assert await room.history() == []


async def test_who_asks_without_reading_waits_for_itself(room: ServedRoom) -> None:
    count = 400
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    opened.setblocking(False)
    await asyncio.get_running_loop().sock_connect(opened, ("127.0.0.1", room.port))
    reader, writer = await asyncio.open_connection(sock=opened, limit=4096)
    writer.write(raw.request("GET", "/openapi.json") * count)
    answered = -1
    while answered != room.gateway.metrics.requests[200]:
        answered = room.gateway.metrics.requests[200]
        await asyncio.gather(*(room.get("/health") for _ in range(20)))
        answered += 20
    for _ in range(count):
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), raw.TIMEOUT_S)
        size = int(head.lower().partition(b"content-length: ")[2].split()[0])
        await asyncio.wait_for(reader.readexactly(size), raw.TIMEOUT_S)
    writer.close()
    await writer.wait_closed()

    assert answered < count


async def test_a_caller_that_goes_away_in_the_middle_of_its_body_is_forgotten(room: ServedRoom) -> None:
    for _ in range(20):
        _, writer = await asyncio.open_connection("127.0.0.1", room.port)
        writer.write(raw.post("/message", b"{" * 1000, f"X-Auth-Token: {room.token}")[:-500])
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    assert (await room.get("/health"))["status"] == "ok"
