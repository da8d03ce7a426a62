"""What a browser says of the page behind a request is looked at on every route."""

from pathlib import Path

import pytest

from tests.gateway import raw
from tests.gateway.served import ServedRoom, served
from tests.gateway.test_permissions import UPGRADE

PATHS = ["/", "/page/main.js", "/health", "/history", "/ws", "/nothing-here"]
WEBSOCKET = [f"{name}: {value}" for name, value in UPGRADE.items()]


async def _ask(room: ServedRoom, path: str, *headers: str, target: str = "") -> int:
    """Return the status of a GET with the room's own token."""
    more = WEBSOCKET if path == "/ws" else []
    sent = raw.request("GET", target or path, *headers, *more, f"X-Auth-Token: {room.token}")
    answer = await raw.exchange(room.port, sent)

    assert answer.status < 400 or answer.is_refusal, answer
    return answer.status


@pytest.mark.parametrize(
    "host",
    [
        "evil.test",
        "evil.test:{port}",
        "localhost.:{port}",
        "127.0.0.1.:{port}",
        "127.0.0.1.evil.test:{port}",
        "localhost:{port}.evil.test",
        "0x7f000001:{port}",
        "2130706433:{port}",
        "127.1:{port}",
        "0.0.0.0:{port}",
        "[::]:{port}",
        "[::ffff:127.0.0.1]:{port}",
        "[::1%25lo]:{port}",
        "evil.test@localhost:{port}",
        "localhost:{port}@evil.test",
        "localhost/evil.test",
        "localhost?evil.test",
        "localhost#evil.test",
        "localhost\\evil.test",
        "localhost:{port}:1",
        "localhost:x",
        "localhost evil.test",
        "localhost,evil.test",
        "::1",
    ],
)
@pytest.mark.parametrize("path", PATHS)
async def test_a_host_that_is_not_exactly_ours_is_refused(room: ServedRoom, path: str, host: str) -> None:
    assert await _ask(room, path, f"Host: {host.format(port=room.port)}") == 403


@pytest.mark.parametrize("host", ["LocalHost:{port}", "127.0.0.1:{port}", "[::1]:{port}", "[0:0::1]:{port}"])
async def test_spellings_of_our_own_name_reach_us_or_nobody(room: ServedRoom, host: str) -> None:
    given = host.format(port=room.port)

    status = await _ask(room, "/health", f"Host: {given}", f"Origin: http://{given}")

    # Another spelling of ::1 is not looked up, so it is not ours.
    assert status == (403 if "0::" in host else 200)


async def test_a_tunnel_may_have_another_port(room: ServedRoom) -> None:
    assert await _ask(room, "/health", "Host: localhost:9999", "Origin: http://localhost:9999") == 200


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "http://{host}:1",
        "http://{host}",
        "https://{host}:{port}",
        "ws://{host}:{port}",
        "chrome-extension://{host}:{port}",
        "http://evil.test",
        "http://evil.test:{port}",
        "http://{host}:{port}.evil.test",
        "http://{host}.:{port}",
        "http://{host}:{port}/",
        "http://user@{host}:{port}",
        "{host}:{port}",
        "http://{other}:{port}",
    ],
)
@pytest.mark.parametrize("path", PATHS)
async def test_an_origin_that_is_not_exactly_ours_is_refused(
    room: ServedRoom, path: str, origin: str, host: str
) -> None:
    other = {"localhost": "127.0.0.1", "127.0.0.1": "localhost"}[host]
    given = origin.format(host=host, port=room.port, other=other)

    assert await _ask(room, path, f"Host: {host}:{room.port}", f"Origin: {given}") == 403


async def test_a_second_origin_does_not_hide_behind_ours(room: ServedRoom) -> None:
    own = [f"Host: localhost:{room.port}", f"Origin: http://localhost:{room.port}"]

    assert await _ask(room, "/health", *own) == 200
    assert await _ask(room, "/health", *own, "Origin: http://evil.test") == 403


async def test_a_second_host_is_refused(room: ServedRoom) -> None:
    sent = raw.request("GET", "/health", "Host: localhost", "Host: evil.test")

    assert (await raw.exchange(room.port, sent)).status in (400, 403)


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("http://evil.test/health", 403),
        ("http://evil.test:{port}/health", 403),
        ("http://localhost:{port}@evil.test/health", 403),
        ("https://localhost:{port}/health", 403),
        ("http://localhost:1/health", 403),
        ("http://localhost:{port}/health", 200),
        ("HTTP://LOCALHOST:{port}/health", 200),
    ],
)
async def test_a_target_that_names_its_server_must_name_us(
    room: ServedRoom, target: str, status: int
) -> None:
    given = target.format(port=room.port)

    assert await _ask(room, "/health", f"Host: localhost:{room.port}", target=given) == status


# --- what newer browsers say besides -------------------------------------------------------------


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "nonsense"])
@pytest.mark.parametrize("dest", ["empty", "script", "image", "iframe", "object", "style", "websocket"])
@pytest.mark.parametrize("path", PATHS)
async def test_another_site_gets_nothing(room: ServedRoom, path: str, dest: str, site: str) -> None:
    head = [f"Sec-Fetch-Site: {site}", f"Sec-Fetch-Dest: {dest}", "Sec-Fetch-Mode: navigate"]

    assert await _ask(room, path, *head) == 403


async def test_a_person_may_follow_a_link_to_the_page(room: ServedRoom) -> None:
    head = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Dest: document", "Sec-Fetch-Mode: navigate"]
    got = await raw.exchange(room.port, raw.request("GET", "/", *head))
    posted = await raw.exchange(room.port, raw.post("/page/enter", b'{"code": "x"}', *head))

    assert (got.status, posted.status) == (200, 403)


@pytest.mark.parametrize("site", ["same-origin", "none"])
async def test_our_own_page_gets_what_it_asks_for(room: ServedRoom, site: str) -> None:
    assert await _ask(room, "/history", f"Sec-Fetch-Site: {site}", "Sec-Fetch-Dest: empty") == 200


# --- a room that other machines can reach --------------------------------------------------------


async def test_a_room_for_all_addresses_has_no_empty_name(tmp_path: Path) -> None:
    async with served(tmp_path / "room", host="") as room:
        assert await _ask(room, "/health", "Host: ") == 403
        assert await _ask(room, "/health", f"Host: 127.0.0.1:{room.port}") == 200
        assert await _ask(room, "/health", "Host: evil.test") == 403
