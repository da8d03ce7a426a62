"""Tokens, Host and Origin by themselves: whose a token is, which requests a browser may bring."""

import socket
from types import SimpleNamespace
from typing import Any

import pytest
from multidict import CIMultiDict

from csp.errors import BadInput, CspError, Forbidden, Unauthenticated
from csp.gateway import auth
from csp.gateway.auth import HostGuard, TokenStore, read_offered_token, read_token
from csp.protocol.enums import HUMAN, AgentId, Role

SECRET = b"s" * 32
CLAUDE = AgentId("claude")


def request(
    *headers: tuple[str, str],
    host: str = "localhost:8765",
    method: str = "GET",
    target: str = "/",
    scheme: str = "http",
    reached: str | None = "127.0.0.1",
) -> Any:
    transport = None
    if reached is not None:
        transport = SimpleNamespace(get_extra_info={"sockname": (reached, 8765)}.get)
    return SimpleNamespace(
        headers=CIMultiDict([("Host", host), *headers]),
        method=method,
        raw_path=target,
        scheme=scheme,
        transport=transport,
    )


def room_with(epoch: int) -> Any:
    claude = SimpleNamespace(id=CLAUDE, epoch=epoch, role="orchestrator")
    return SimpleNamespace(participants={CLAUDE: claude})


# --- tokens --------------------------------------------------------------------------------------


def test_a_token_is_good_for_its_own_epoch_alone() -> None:
    tokens = TokenStore(SECRET)
    token = tokens.issue(CLAUDE, 3)
    found = tokens.identify(token, room_with(3))

    assert (found.id, found.role, found.epoch, found.page) == ("claude", Role.ORCHESTRATOR, 3, "")
    # The hash is remembered by now, but the claim is looked at each time.
    for room in (room_with(4), SimpleNamespace(participants={})):
        with pytest.raises(Unauthenticated, match="'claude' is no longer valid"):
            tokens.identify(token, room)  # type: ignore[arg-type]  # it has what is used


def test_the_rooms_token_is_the_chosen_one_or_made_of_the_secret() -> None:
    chosen, made = TokenStore(SECRET, "a token"), TokenStore(SECRET)

    assert chosen.identify("a token", room_with(1)).role is Role.ROOM
    assert chosen.identify("a token", room_with(1)).id == HUMAN
    assert made.room_token == TokenStore(SECRET).room_token != TokenStore(b"t" * 32).room_token


@pytest.mark.parametrize("token", ["", "claude.3", "claude.3.", "claude.3." + "0" * 40, "\ud800", "claude"])
def test_what_is_no_token_of_this_room_is_refused(token: str) -> None:
    with pytest.raises(Unauthenticated, match="not valid in this room"):
        TokenStore(SECRET).identify(token, room_with(3))


@pytest.mark.parametrize(
    "token", ["csp-page_abc", "claude.3." + "0" * 40], ids=["a token of a page", "a token of an agent"]
)
def test_a_token_of_somebody_else_cannot_be_the_rooms(token: str) -> None:
    with pytest.raises(BadInput, match="CSP_AUTH_TOKEN"):
        TokenStore(SECRET, token)


def test_only_so_much_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert auth.MAX_REMEMBERED == 1024
    monkeypatch.setattr(auth, "MAX_REMEMBERED", 2)
    tokens, guard = TokenStore(SECRET), HostGuard("127.0.0.1")
    for number in range(4):
        tokens.identify(tokens.issue(CLAUDE, number), room_with(number))
        guard.check(request(host=f"localhost:{number}"))

    assert (len(tokens._known), len(guard._good)) == (2, 2)


@pytest.mark.parametrize(
    ("headers", "token"),
    [
        ([("X-Auth-Token", "t")], "t"),
        ([("Authorization", "Bearer t")], "t"),
        ([("Authorization", "bearer  t ")], "t"),
        ([("X-Auth-Token", "t"), ("Authorization", "Bearer u")], "t"),
        ([("Authorization", "Basic t")], None),
        ([("X-Auth-Token", ""), ("Authorization", "Bearer u")], None),
        ([], None),
    ],
)
def test_a_token_comes_in_one_of_two_headers(headers: list[tuple[str, str]], token: str | None) -> None:
    if token is None:
        with pytest.raises(Unauthenticated, match="no token"):
            read_token(request(*headers))
    else:
        assert read_token(request(*headers)) == token


@pytest.mark.parametrize(
    ("offer", "has_origin", "expected"),
    [
        ("", True, ""),
        ("chat, other", True, ""),
        ("csp, csp-token.csp-page_x", True, "csp-page_x"),
        ("csp-token.csp-page_x,csp", True, "csp-page_x"),
        ("csp-token.csp-page_x", True, BadInput),
        ("csp, csp-token.csp-page_x, csp-token.csp-page_y", True, BadInput),
        ("csp, csp-token.csp-page_x", False, Forbidden),
        ("csp, csp-token.claude", True, Forbidden),
    ],
)
def test_only_a_page_offers_its_token_as_a_subprotocol(
    offer: str, has_origin: bool, expected: str | type[CspError]
) -> None:
    origin = [("Origin", "http://localhost:8765")] if has_origin else []
    asked = request(("Sec-WebSocket-Protocol", offer), *origin)
    if isinstance(expected, str):
        assert read_offered_token(asked) == expected
    else:
        with pytest.raises(expected):
            read_offered_token(asked)


# --- the guard -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bound", "host", "reached", "is_ours"),
    [
        ("127.0.0.1", "localhost", "127.0.0.1", True),
        ("127.0.0.1", "LocalHost:1", "127.0.0.1", True),
        ("127.0.0.1", "[::1]:8765", "127.0.0.1", True),
        ("127.0.0.1", "evil.example", "127.0.0.1", False),
        ("127.0.0.1", "", "127.0.0.1", False),
        ("127.0.0.1", "localhost:8765:1", "127.0.0.1", False),
        ("127.0.0.1", "[::1", "127.0.0.1", False),
        ("127.0.0.1", "[1:2:3]", "127.0.0.1", False),
        ("127.0.0.1", "box", "127.0.0.1", False),
        ("127.0.0.1", "192.168.0.7", None, False),
        ("Room.Example", "room.example", "192.168.0.7", True),
        ("0.0.0.0", "192.168.0.7:1", "192.168.0.7", True),
        ("::", "192.168.0.7", "::ffff:192.168.0.7", True),
        ("0.0.0.0", "box", "192.168.0.7", True),
        ("0.0.0.0", "box.lan", "192.168.0.7", True),
        ("0.0.0.0", "box.evil", "192.168.0.7", False),
    ],
)
def test_a_gateway_answers_to_its_own_names_alone(
    monkeypatch: pytest.MonkeyPatch, bound: str, host: str, reached: str | None, is_ours: bool
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "Box")
    monkeypatch.setattr(socket, "getfqdn", lambda: "Box.LAN")
    guard = HostGuard(bound)
    for _ in range(2):
        if is_ours:
            guard.check(request(host=host, reached=reached))
            continue
        with pytest.raises(Forbidden, match="is not this gateway"):
            guard.check(request(host=host, reached=reached))


def test_a_gateway_answers_to_the_names_of_its_balancer() -> None:
    guard = HostGuard("127.0.0.1", "Chat.example, b.example")
    for host in ("chat.example", "CHAT.example:443", "b.example"):
        guard.check(request(host=host, reached="10.0.0.1"))
    for host in ("example", "a.chat.example", ""):
        with pytest.raises(Forbidden):
            guard.check(request(host=host, reached="10.0.0.1"))


OWN = ("Origin", "http://localhost:8765")


@pytest.mark.parametrize(
    ("headers", "options", "is_ours"),
    [
        ([OWN], {}, True),
        ([("Origin", "HTTP://LOCALHOST:8765")], {"host": "LocalHost:8765"}, True),
        ([("Origin", "https://localhost:8765")], {}, False),
        ([("Origin", "https://localhost:8765")], {"scheme": "https"}, True),
        ([("Origin", "http://localhost:8766")], {}, False),
        ([("Origin", "null")], {}, False),
        ([OWN, ("Origin", "http://evil.example")], {}, False),
        ([], {"target": "http://localhost:8765/x"}, True),
        ([], {"target": "http://evil.example/x"}, False),
        ([], {"target": "http://localhost:8765.evil.example/x"}, False),
        ([OWN], {"target": "http://evil.example/x"}, False),
        ([("Sec-Fetch-Site", "same-origin")], {}, True),
        ([("Sec-Fetch-Site", "none")], {}, True),
        ([("Sec-Fetch-Site", "same-site")], {}, False),
        ([("Sec-Fetch-Site", "cross-site")], {}, False),
        ([OWN, ("Sec-Fetch-Site", "cross-site")], {}, False),
    ],
)
def test_a_page_of_another_origin_gets_nothing(
    headers: list[tuple[str, str]], options: dict[str, str], is_ours: bool
) -> None:
    guard, asked = HostGuard("127.0.0.1"), request(*headers, **options)
    if is_ours:
        guard.check(asked)
    else:
        with pytest.raises(Forbidden):
            guard.check(asked)


@pytest.mark.parametrize(
    ("method", "mode", "destination", "is_visit"),
    [
        ("GET", "navigate", "document", True),
        ("POST", "navigate", "document", False),
        ("GET", "navigate", "iframe", False),
        ("GET", "cors", "document", False),
    ],
)
def test_a_person_may_follow_a_link_from_anywhere(
    method: str, mode: str, destination: str, is_visit: bool
) -> None:
    said = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", mode), ("Sec-Fetch-Dest", destination)]
    guard = HostGuard("127.0.0.1")
    if is_visit:
        guard.check(request(*said, method=method))
    else:
        with pytest.raises(Forbidden):
            guard.check(request(*said, method=method))
