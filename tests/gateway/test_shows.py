"""The first things anybody tries with curl."""

import pytest

from tests.gateway import raw
from tests.gateway.served import ServedRoom

HELLO = b'{"to": "claude", "content": "hello"}'
FOREIGN = [
    "Host: evil.example",
    "Host: localhost.evil.example:8765",
    "Host: ",
    "Host: [",
    "Host: [::1",
    "Host: \xff\xfe",
    "Host: user@localhost@evil.example",
]
PATHS = ["/health", "/openapi.json", "/ws", "/message", "/nothing-here", "/"]


async def test_a_message_without_a_content_type_is_sent(room: ServedRoom) -> None:
    await room.join("claude")

    answer = await room.call("POST", "/message", data=HELLO)

    assert answer.status == 200
    assert answer.data == {"success": True, "id": "m-2", "seq": 2, "recipients": ["claude"]}


@pytest.mark.parametrize(
    "kind", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data", "nonsense", ""]
)
async def test_the_content_type_does_not_matter(room: ServedRoom, kind: str) -> None:
    await room.join("claude")
    head = [f"X-Auth-Token: {room.token}", f"Content-Type: {kind}"]

    answer = await raw.exchange(room.port, raw.post("/message", HELLO, *head))

    assert (answer.status, answer.data["recipients"]) == (200, ["claude"])


async def test_the_least_request_by_hand_is_enough(room: ServedRoom) -> None:
    await room.join("claude")

    sent = raw.post("/message", HELLO, f"X-Auth-Token: {room.token}", f"Host: 127.0.0.1:{room.port}")
    answer = await raw.exchange(room.port, sent)

    assert answer.status == 200


async def test_a_bearer_token_does_as_well(room: ServedRoom) -> None:
    answer = await room.call("GET", "/agents", token=None, headers={"Authorization": f"bearer {room.token}"})

    assert (answer.status, answer.data) == (200, [])


@pytest.mark.parametrize(
    "headers",
    [
        [],
        ["X-Auth-Token: wrong"],
        ["X-Auth-Token: "],
        ["X-Auth-Token: claude.1.0000000000000000000000000000000000000000"],
        ["X-Auth-Token: \xff\xfe"],
        ["X-Auth-Token: ..."],
        ["Authorization: Bearer"],
        ["Authorization: Bearer wrong"],
        ["Authorization: Basic {token}"],
        ["X-Auth-Token: wrong", "Authorization: Bearer {token}"],
    ],
)
async def test_no_or_a_wrong_token_is_401(room: ServedRoom, headers: list[str]) -> None:
    await room.join("claude")
    given = [header.replace("{token}", room.token) for header in headers]

    answer = await raw.exchange(room.port, raw.post("/message", HELLO, *given))

    assert answer.status == 401
    assert answer.is_refusal


async def test_a_token_in_the_url_is_no_token(room: ServedRoom) -> None:
    for name in ("token", "auth", "X-Auth-Token", "access_token"):
        answer = await room.call("GET", f"/agents?{name}={room.token}", token=None)

        assert answer.status == 401


@pytest.mark.parametrize("host", FOREIGN)
@pytest.mark.parametrize("path", PATHS)
async def test_a_foreign_host_is_403_on_every_route(room: ServedRoom, path: str, host: str) -> None:
    sent = raw.request("GET", path, host, f"X-Auth-Token: {room.token}")
    answer = await raw.exchange(room.port, sent)

    assert answer.status == 403
    assert answer.is_refusal


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:1", "http://[", "", "\xff", "file://"]
)
@pytest.mark.parametrize("path", PATHS)
async def test_a_foreign_origin_is_403_on_every_route(room: ServedRoom, path: str, origin: str) -> None:
    head = [f"Host: localhost:{room.port}", f"Origin: {origin}", f"X-Auth-Token: {room.token}"]
    answer = await raw.exchange(room.port, raw.request("GET", path, *head))

    assert answer.status == 403
    assert answer.is_refusal


async def test_a_websocket_of_a_foreign_page_is_403(room: ServedRoom) -> None:
    upgrade = [
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        f"X-Auth-Token: {room.token}",
    ]
    foreign = raw.request("GET", "/ws", *upgrade, "Host: localhost", "Origin: http://evil.example")
    own = raw.request("GET", "/ws", *upgrade, "Host: localhost", "Origin: http://localhost")

    refused = await raw.exchange(room.port, foreign)
    accepted = await raw.exchange(room.port, own)

    assert refused.is_refusal
    assert (refused.status, accepted.status) == (403, 101)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:1", "[::1]:8765"])
async def test_every_name_of_loopback_is_ours(room: ServedRoom, host: str) -> None:
    head = [f"Host: {host}", f"Origin: http://{host}"]
    answer = await raw.exchange(room.port, raw.request("GET", "/health", *head))

    assert (answer.status, answer.data["status"]) == (200, "ok")


async def test_a_request_without_host_is_refused(room: ServedRoom) -> None:
    answer = await raw.exchange(room.port, b"GET /health HTTP/1.0\r\n\r\n")

    assert answer.status == 403
    assert answer.is_refusal


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("GET", "/nothing", 404, None),
        ("POST", "/", 405, "GET"),
        ("GET", "/agents/claude/pause/now", 404, None),
        ("POST", "/agents/{id}/pause", 404, None),
        ("GET", "/%2e%2e/%2e%2e/etc/passwd", 404, None),
        ("GET", "/message", 405, "POST"),
        ("PATCH", "/mode", 405, "GET, POST"),
        ("POST", "/health", 405, "GET"),
        ("OPTIONS", "/agents", 405, "GET, POST"),
        ("PUT", "/agents/claude", 405, "DELETE"),
    ],
)
async def test_404_and_405_are_json(
    room: ServedRoom, method: str, path: str, status: int, allow: str | None
) -> None:
    answer = await room.call(method, path)

    assert answer.is_refusal
    assert (answer.status, answer.headers.get("Allow")) == (status, allow)
