"""Which command lines are plain, and the room that they mean."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from csp.cli.fast_command_line import is_plain, plain_folder, plain_room


@pytest.mark.parametrize(
    ("env", "is_one"),
    [
        ({}, True),
        ({"PATH": "/bin", "CSP_ROOM": "den", "CSP_AUTH_TOKEN": "t", "CSP_PANES": "1"}, True),
        ({"CSP_PORT": "1"}, False),
        ({"CSP_PORT": ""}, True),
        ({"CSP_AUTH_TOKEN": "two\nlines"}, False),
    ],
)
def test_a_setting_that_has_to_be_checked_is_not_plain(env: dict[str, str], is_one: bool) -> None:
    assert is_plain(env) is is_one


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "here").mkdir()
    (tmp_path / "config" / "csp").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


@pytest.mark.parametrize("file", ["here/csp.toml", "csp.toml", "config/csp/config.toml"])
def test_a_folder_is_plain_until_a_settings_file_applies(here: Path, file: str) -> None:
    env = {"XDG_CONFIG_HOME": str(here.parent / "config")}
    before = plain_folder(env)
    (here.parent / file).touch()

    assert (before, plain_folder(env)) == (str(here), "")


def test_a_folder_that_is_gone_is_not_plain(here: Path) -> None:
    here.rmdir()

    assert plain_folder({"XDG_CONFIG_HOME": str(here.parent / "config")}) == ""


class Rooms:
    """The files of running rooms, which hold a lock on them."""

    def __init__(self, folder: Path) -> None:
        self.env = {"XDG_RUNTIME_DIR": str(folder)}
        self.folder = folder / "csp"
        self.folder.mkdir(mode=0o700)
        self._locked = ExitStack()

    def close(self) -> None:
        self._locked.close()

    def add(self, name: str, **fields: object) -> None:
        known = {"url": f"http://{name}", "token": f"token of {name}", "room": name, "project": os.getcwd()}
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(known | fields))
        fcntl.flock(self._locked.enter_context(path.open()), fcntl.LOCK_EX)


@pytest.fixture
def rooms(here: Path, tmp_path: Path) -> Iterator[Rooms]:
    made = Rooms(tmp_path)
    yield made
    made.close()


def test_the_room_of_the_folder_is_meant(rooms: Rooms) -> None:
    assert plain_room("", rooms.env) is None
    rooms.add("attic", project="/elsewhere")
    assert plain_room("", rooms.env) is None
    rooms.add("den")
    (rooms.folder / "den.agents").mkdir()

    assert plain_room("", rooms.env) == ("http://den", "token of den", "den")


def test_of_two_rooms_the_named_one_is_meant(rooms: Rooms) -> None:
    rooms.add("den")
    rooms.add("attic")

    assert plain_room("", rooms.env) is None
    for found in (plain_room("attic", rooms.env), plain_room("", rooms.env | {"CSP_ROOM": "attic"})):
        assert found == ("http://attic", "token of attic", "attic")
    assert plain_room("den", rooms.env | {"CSP_ROOM": "attic"}) == ("http://den", "token of den", "den")
    assert plain_room("cellar", rooms.env) is None
    assert plain_room("../csp/den", rooms.env) is None


def test_a_token_of_the_environment_is_used(rooms: Rooms) -> None:
    rooms.add("den")

    assert plain_room("", rooms.env | {"CSP_AUTH_TOKEN": "mine"}) == ("http://den", "mine", "den")


def test_a_repository_has_its_room_at_its_top(
    rooms: Rooms, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms.add("den", project=str(here / ".git"))
    rooms.add("old", project=str(here))
    before = plain_room("", rooms.env)
    (here / ".git").mkdir()
    at_top = plain_room("", rooms.env)
    (here / "src").mkdir()
    monkeypatch.chdir(here / "src")

    # Whose project a folder below belongs to is not seen without a closer look.
    found = [room and room[2] for room in (before, at_top, plain_room("", rooms.env))]
    assert found == ["old", "den", None]


@pytest.mark.parametrize("field", ["url", "token", "room"])
def test_a_file_that_is_not_of_a_room_is_left_to_the_long_way(rooms: Rooms, field: str) -> None:
    rooms.add("den", **{field: 7})

    assert plain_room("", rooms.env) is None
