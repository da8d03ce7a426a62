"""An agent that joins from outside: under its own token again, as long as that is known."""

from pathlib import Path
from typing import Any, ClassVar

import pytest

from csp.errors import Broken, CspError, Forbidden, NotFound, Unauthenticated, Unreachable
from csp.mcp import outside_member
from csp.mcp.outside_member import OutsideMember
from csp.room_registry import Address


class Room:
    """What stands in for the gateway: it notes each call with the token that it was made with."""

    calls: ClassVar[list[tuple[str, str, str, Any]]] = []
    refuses: ClassVar[dict[str, CspError]] = {}
    answers: ClassVar[list[Any]] = []

    def __init__(self, url: str, token: str) -> None:
        self.token = token

    def post(self, path: str, body: Any = None) -> Any:
        Room.calls.append(("POST", self.token, path, body))
        if self.token in Room.refuses:
            raise Room.refuses[self.token]
        return {"agentId": "scout-2", "token": f"token-{len(Room.calls)}"}

    def get(self, path: str, **query: Any) -> Any:
        Room.calls.append(("GET", self.token, path, query))
        answer = Room.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture(autouse=True)
def _room(monkeypatch: pytest.MonkeyPatch) -> None:
    Room.calls, Room.refuses, Room.answers = [], {"": Unauthenticated("no token")}, []
    monkeypatch.setattr(outside_member, "GatewayClient", Room)


def made(state_dir: Path, room: str = "den") -> OutsideMember:
    address = Address(url="http://x", token="of-the-room", room=room)
    return OutsideMember("Scout", lambda: address, state_dir)


def tokens() -> list[str]:
    return [token for _, token, _, _ in Room.calls]


def test_who_is_new_joins_with_the_rooms_token(tmp_path: Path) -> None:
    scout = made(tmp_path)
    gateway: Any = scout.connect()
    path = tmp_path / "den.agents" / "scout.mcp"

    assert tokens() == ["", "of-the-room"]
    assert Room.calls[-1][3] == {"agentId": "Scout", "kind": "mcp", "capabilities": ["mcp"]}
    assert (scout.id, gateway.token) == ("scout-2", "token-2")
    assert path.read_text() == "token-2" and path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_who_was_here_comes_back_with_its_own_token(tmp_path: Path) -> None:
    made(tmp_path).connect()
    Room.calls = []
    made(tmp_path).connect()

    assert tokens() == ["token-2"]
    assert (tmp_path / "den.agents" / "scout.mcp").read_text() == "token-1"


@pytest.mark.parametrize("error", [Unauthenticated("x"), Forbidden("x"), NotFound("x")])
def test_a_token_that_is_worth_nothing_any_more_is_replaced(tmp_path: Path, error: CspError) -> None:
    made(tmp_path).connect()
    Room.refuses["token-2"] = error
    made(tmp_path).connect()

    assert tokens()[2:] == ["token-2", "of-the-room"]
    assert (tmp_path / "den.agents" / "scout.mcp").read_text() == "token-4"


def test_a_room_that_cannot_be_reached_costs_no_token(tmp_path: Path) -> None:
    made(tmp_path).connect()
    Room.refuses["token-2"] = Unreachable("gone")

    with pytest.raises(Unreachable):
        made(tmp_path).connect()
    assert (tmp_path / "den.agents" / "scout.mcp").read_text() == "token-2"


def test_a_room_of_which_only_the_address_is_known_leaves_no_file(tmp_path: Path) -> None:
    made(tmp_path, room="").connect()

    assert tokens() == ["", "of-the-room"]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "den.agents").write_text("in the way")

    with pytest.raises(Broken, match=r"cannot write .*den\.agents.*scout\.mcp"):
        made(tmp_path).connect()
    assert Room.calls == []


def test_who_stays_is_seen_by_a_wait_for_nothing_until_it_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("csp.mcp.outside_member.time.sleep", pauses.append)
    scout = made(tmp_path)
    scout.connect()
    Room.calls = []
    Room.answers = [{"items": []}, NotFound("not yet"), {"items": []}, Unauthenticated("removed")]
    scout._stay()

    assert [(call[2], call[3]) for call in Room.calls if call[0] == "GET"] == [
        ("/inbox/scout-2", {"after": 2**53, "wait": 50})
    ] * 4
    assert pauses == [1.0]


def test_who_leaves_is_offline(tmp_path: Path) -> None:
    scout = made(tmp_path)
    scout.connect()
    scout.leave()

    assert Room.calls[-1][2:] == ("/state", {"state": "offline"})


def test_who_never_joined_has_nothing_to_leave(tmp_path: Path) -> None:
    made(tmp_path).leave()

    assert Room.calls == []


def test_a_room_that_hears_no_good_bye_is_left_all_the_same(tmp_path: Path) -> None:
    scout = made(tmp_path)
    scout.connect()
    Room.refuses = {"token-2": Forbidden("no"), "": Forbidden("no"), "of-the-room": Forbidden("no")}
    scout.leave()
