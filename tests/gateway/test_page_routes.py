"""How a page gets in, what it may do there, how it gets out."""

import asyncio
import json
import logging
import stat
from pathlib import Path

import aiohttp
import pytest

from csp.errors import BadInput
from csp.fast_start.atomic_files import draft_of
from csp.gateway.auth import PAGE_TOKEN, TokenStore
from csp.gateway.page_routes import addresses
from csp.gateway.page_tokens import FILE, LINK_S, MAX_LINKS, MAX_PAGES, PAGE_S
from tests.gateway import raw
from tests.gateway.served import Answer, Clock, ServedRoom, served
from tests.waiting import wait_until


async def _enter(room: ServedRoom, code: str) -> Answer:
    return await room.call("POST", "/page/enter", {"code": code}, token=None)


async def _code(room: ServedRoom) -> str:
    return str((await room.post("/page/link"))["code"])


async def _status(room: ServedRoom, token: str) -> int:
    return (await room.call("GET", "/queue", token=token)).status


# --- links ---------------------------------------------------------------------------------------


async def test_a_link_lets_one_page_in(still_room: ServedRoom, clock: Clock) -> None:
    link = await still_room.post("/page/link")
    answer = await _enter(still_room, link["code"])

    assert link == {
        "success": True,
        "code": link["code"],
        "path": f"/#link={link['code']}",
        "expires": clock.now + LINK_S,
        "hosts": [],
    }
    assert answer.data == {
        "success": True,
        "token": answer.data["token"],
        "room": "test",
        "expires": clock.now + 7 * 86400,
    }
    assert await _status(still_room, answer.data["token"]) == 200


async def test_a_used_link_is_refused(room: ServedRoom) -> None:
    code = await _code(room)
    await _enter(room, code)

    again = await _enter(room, code)

    assert (again.status, again.data["hint"]) == (401, "run: csp web")
    assert again.is_refusal


@pytest.mark.parametrize("wrong", ["{code}x", "x", "{short}", "\u00e9", "{upper}"])
async def test_a_wrong_link_is_refused_and_costs_no_other(room: ServedRoom, wrong: str) -> None:
    code = await _code(room)

    refused = await _enter(room, wrong.format(code=code, short=code[:-1], upper=code.swapcase()))

    assert (refused.status, (await _enter(room, code)).status) == (401, 200)


async def test_an_old_link_is_refused(still_room: ServedRoom, clock: Clock) -> None:
    code, other = await _code(still_room), await _code(still_room)
    clock.now += LINK_S - 1
    in_time = await _enter(still_room, code)
    clock.now += 1
    late = await _enter(still_room, other)

    assert (in_time.status, late.status) == (200, 401)


async def test_links_cannot_be_guessed(room: ServedRoom) -> None:
    codes = [await _code(room) for _ in range(10)]

    assert len(set(codes)) == 10
    # Six bits a character.
    assert all(len(code) * 6 >= 128 for code in codes)


async def test_too_many_links_push_out_the_oldest(room: ServedRoom) -> None:
    codes = [await _code(room) for _ in range(MAX_LINKS + 1)]
    statuses = [(await _enter(room, code)).status for code in codes]

    assert statuses == [401] + [200] * MAX_LINKS


async def test_a_link_does_not_outlive_the_gateway(room: ServedRoom) -> None:
    code = await _code(room)
    await room.restart()

    assert (await _enter(room, code)).status == 401


# --- what a page is ------------------------------------------------------------------------------


async def test_a_page_speaks_as_the_human(room: ServedRoom) -> None:
    await room.join("claude")

    await room.send("claude", "hello", await room.enter())

    assert [(item["type"], item["sender"]) for item in await room.history()] == [("human_message", "human")]


async def test_a_page_may_not_redact(room: ServedRoom) -> None:
    page = await room.enter()
    message = await room.send("all", "hello")

    answer = await room.call("POST", f"/messages/{message}/redact", token=page)

    assert answer.status == 403
    assert answer.is_refusal
    assert [item["text"] for item in await room.history()] == ["hello"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/runs", {"goal": "g", "builder": "a", "reviewer": "b", "test": "touch /tmp/x"}),
        ("/runs", {"goal": "g", "builder": "a", "reviewer": "b", "dir": "/"}),
        ("/agents", {"name": "m", "provider": "openai", "model": "m", "base_url": "http://127.0.0.1:1/"}),
        ("/agents", {"name": "m", "provider": "openai", "model": "m", "key_env": "HOME"}),
    ],
)
async def test_a_page_may_neither_run_a_command_nor_name_an_address_or_a_variable(
    room: ServedRoom, path: str, body: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room.gateway.agent_launcher, "start", lambda body: pytest.fail("it was started"))

    answer = await room.call("POST", path, body, token=await room.enter())

    assert (answer.status, answer.data["error"][:31]) == (403, "only the room's token may set '")


@pytest.mark.parametrize("op", ["output", "delivery", "working", "state", "control_done", "live"])
async def test_a_page_may_not_report_as_agents_do(room: ServedRoom, op: str) -> None:
    socket = await room.connect(await room.enter())

    answer = await socket.ask(op, content="hello", id="m-1", state="busy", agent="claude")

    assert answer["status"] == 403


async def test_a_page_may_send_and_watch_over_its_websocket(room: ServedRoom) -> None:
    await room.join("claude")
    socket = await room.connect(await room.enter())

    sent = await socket.ask("message", to="claude", content="hello")
    watching = await socket.ask("watch", screen="claude")

    assert (sent["ok"], sent["recipients"], watching["ok"]) == (True, ["claude"], True)


def test_no_pages_token_can_be_the_rooms() -> None:
    with pytest.raises(BadInput, match="a page's token"):
        TokenStore(b"secret", f"{PAGE_TOKEN}abc")


async def test_a_page_is_in_one_room_only(room: ServedRoom, tmp_path: Path) -> None:
    page = await room.enter()
    async with served(tmp_path / "other") as other:
        await other.enter()

        assert await _status(other, page) == 401


# --- leaving -------------------------------------------------------------------------------------


async def test_a_page_that_leaves_is_out_at_once(room: ServedRoom) -> None:
    page, other = await room.enter(), await room.enter()
    socket, others = await room.connect(page), await room.connect(other)
    await room.post("/page/leave", {}, page)
    await wait_until(lambda: socket.is_closed)

    assert socket.opened.close_code == 4001
    assert await _status(room, page) == 401
    assert not others.is_closed
    assert await _status(room, other) == 200


@pytest.mark.parametrize("by_page", [False, True])
async def test_all_pages_leave_together(room: ServedRoom, by_page: bool) -> None:
    pages = [await room.enter(), await room.enter()]
    sockets = [await room.connect(page) for page in pages]
    own = await room.connect()
    code = await _code(room)
    await room.post("/page/leave", {"all": True}, pages[0] if by_page else room.token)
    await wait_until(lambda: all(socket.is_closed for socket in sockets))

    assert [socket.opened.close_code for socket in sockets] == [4001, 4001]
    assert [await _status(room, page) for page in pages] == [401, 401]
    assert (await _enter(room, code)).status == 401
    assert not own.is_closed


async def test_a_page_that_leaves_hears_nothing_more(room: ServedRoom) -> None:
    page = await room.enter()
    seq = (await room.get("/health"))["seq"]
    poll = asyncio.ensure_future(room.call("GET", f"/history?after={seq}&wait=30", token=page))
    await wait_until(lambda: bool(room.gateway.broadcast._news))
    await room.post("/page/leave", {}, page)
    answer = await asyncio.wait_for(poll, raw.TIMEOUT_S)

    assert answer.status == 401


async def test_what_a_left_page_still_sends_is_refused(room: ServedRoom) -> None:
    page = await room.enter()
    sent = raw.post("/message", b'{"to": "all", "content": "hello"}', f"X-Auth-Token: {page}")
    reader, writer = await asyncio.open_connection("127.0.0.1", room.port)
    writer.write(sent[:-5])
    await room.get("/health")
    await room.post("/page/leave", {}, page)
    writer.write(sent[-5:])
    answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), raw.TIMEOUT_S)
    writer.close()
    await writer.wait_closed()

    assert answer.startswith(b"HTTP/1.1 401 ")
    assert await room.history() == []


# --- how long it lasts ---------------------------------------------------------------------------


async def test_a_page_outlives_the_gateway(room: ServedRoom) -> None:
    page, left = await room.enter(), await room.enter()
    await room.post("/page/leave", {}, left)
    await room.restart()

    assert (await _status(room, page), await _status(room, left)) == (200, 401)


async def test_a_page_ends_after_a_week(still_room: ServedRoom, clock: Clock) -> None:
    page = await still_room.enter()
    socket = await still_room.connect(page)
    clock.now += PAGE_S - 1
    before = await _status(still_room, page)
    clock.now += 1
    still_room.gateway.drop_stale_sockets()
    await wait_until(lambda: socket.is_closed)

    assert (before, await _status(still_room, page)) == (200, 401)
    assert socket.opened.close_code == 4001


async def test_too_many_pages_push_out_the_oldest(room: ServedRoom) -> None:
    pages = [await room.enter() for _ in range(MAX_PAGES + 1)]

    assert [await _status(room, page) for page in (pages[0], pages[1], pages[-1])] == [401, 200, 200]


async def test_only_a_hash_of_the_token_is_kept(room: ServedRoom) -> None:
    page = await room.enter()
    path = room.folder / FILE
    (entry,) = json.loads(path.read_bytes())

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(entry) == ["expires", "hash"]
    assert page.encode() not in path.read_bytes()
    assert page.removeprefix(PAGE_TOKEN).encode() not in path.read_bytes()


async def test_another_token_of_the_room_ends_its_pages(tmp_path: Path) -> None:
    async with served(tmp_path / "room") as room:
        page = await room.enter()
    async with served(tmp_path / "room", auth_token="changed") as room:
        changed = await _status(room, page)
    async with served(tmp_path / "room") as room:
        back = await _status(room, page)

    assert (changed, back) == (401, 200)


@pytest.mark.parametrize("content", [b"", b"nonsense", b'{"a": 1}', b'[{"hash": 1}]', b"\xff"])
async def test_a_damaged_file_costs_the_pages_not_the_room(room: ServedRoom, content: bytes) -> None:
    page = await room.enter()
    (room.folder / FILE).write_bytes(content)
    await room.restart()

    assert await _status(room, page) == 401
    assert await _status(room, await room.enter()) == 200


async def test_nobody_gets_in_who_cannot_be_remembered(room: ServedRoom) -> None:
    page = await room.enter()
    Path(draft_of(room.folder / FILE)).mkdir()

    answer = await _enter(room, await _code(room))

    assert answer.status == 507
    assert len(room.gateway.page_tokens) == 1
    assert await _status(room, page) == 200


async def test_a_page_that_cannot_be_forgotten_is_out_all_the_same(room: ServedRoom) -> None:
    page = await room.enter()
    Path(draft_of(room.folder / FILE)).mkdir()
    answer = await room.call("POST", "/page/leave", {}, token=page)
    await room.restart()

    assert answer.status == 507
    assert await _status(room, page) == 401


# --- the WebSocket of a browser ------------------------------------------------------------------


async def _offer(room: ServedRoom, *offers: str, origin: str | None = "own") -> tuple[int, str | None]:
    """Open a WebSocket as a browser does; return its status, the subprotocol it got."""
    headers = {} if origin is None else {"Origin": room.url if origin == "own" else origin}
    try:
        async with room.http.ws_connect(f"{room.url}/ws", protocols=offers, headers=headers) as socket:
            return 101, socket.protocol
    except aiohttp.WSServerHandshakeError as error:
        return error.status, None


async def test_a_page_offers_its_token_as_a_subprotocol(room: ServedRoom) -> None:
    page = await room.enter()

    assert await _offer(room, "csp", f"csp-token.{page}") == (101, "csp")
    assert await _offer(room, f"csp-token.{page}", "csp") == (101, "csp")


@pytest.mark.parametrize(
    ("offers", "status"),
    [
        (["csp"], 401),
        (["csp", "csp-token."], 403),
        (["csp", "csp-token.{page}x"], 401),
        (["csp-token.{page}"], 400),
        (["csp", "csp-token.{page}", "csp-token.{page}"], 400),
        (["csp", "csp-token.{room}"], 403),
        (["csp", "csp-token.{agent}"], 403),
        (["csp", "Csp-Token.{page}"], 401),
    ],
)
async def test_any_other_offer_is_refused(
    room: ServedRoom, caplog: pytest.LogCaptureFixture, offers: list[str], status: int
) -> None:
    caplog.set_level(logging.DEBUG)
    page, claude = await room.enter(), await room.join("claude")
    given = [offer.format(page=page, room=room.token, agent=claude.token) for offer in offers]

    assert await _offer(room, *given) == (status, None)
    said = "\n".join(f"{record.getMessage()} {vars(record)}" for record in caplog.records)
    assert not any(token in said for token in (page, room.token, claude.token))


@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", "http://127.0.0.1:1"])
async def test_no_other_page_can_use_the_offer(room: ServedRoom, origin: str | None) -> None:
    page = await room.enter()

    assert await _offer(room, "csp", f"csp-token.{page}", origin=origin) == (403, None)


async def test_a_header_needs_no_offer(room: ServedRoom) -> None:
    async with room.http.ws_connect(f"{room.url}/ws", headers={"X-Auth-Token": room.token}) as socket:
        assert socket.protocol is None


# --- other machines ------------------------------------------------------------------------------


def test_nobody_else_reaches_loopback() -> None:
    assert [addresses(host) for host in ("127.0.0.1", "localhost", "::1")] == [[], [], []]


def test_a_chosen_address_is_the_one_to_use() -> None:
    assert addresses("192.168.1.5") == ["192.168.1.5"]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
def test_all_addresses_are_those_that_others_reach(host: str) -> None:
    found = addresses(host)

    assert not any(address.startswith(("127.", "0.")) or address in ("::1", "::") for address in found)
