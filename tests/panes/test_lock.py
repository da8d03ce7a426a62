"""One csp at a time is at work on a room."""

import fcntl
import stat
import threading
from pathlib import Path

import pytest

from csp.errors import Refused
from csp.panes import room_processes
from csp.panes.room_processes import lock_path, locked
from tests.waiting import wait_until_sync


def nothing(text: str) -> None:
    pass


def test_the_second_waits_for_the_first_and_says_so(tmp_path: Path) -> None:
    shown: list[str] = []
    order: list[str] = []

    def second() -> None:
        with locked(tmp_path / "state", "default", shown.append):
            order.append("second")

    with locked(tmp_path / "state", "default", nothing):
        thread = threading.Thread(target=second)
        thread.start()
        wait_until_sync(lambda: shown, 60.0, "the second waits")
        order.append("first")
    thread.join(60)

    assert order == ["first", "second"]
    assert shown[0] == "waiting for another csp that is working on room default…"


def test_patience_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room_processes, "LOCK_PATIENCE_S", 0.2)
    with (
        locked(tmp_path, "default", nothing),
        pytest.raises(Refused, match=r"working on room 'default' for 0\.2 s"),
        locked(tmp_path, "default", nothing),
    ):
        pass


def test_another_room_is_not_held_up(tmp_path: Path) -> None:
    with locked(tmp_path, "default", nothing), locked(tmp_path, "other", nothing):
        assert lock_path(tmp_path, "default") != lock_path(tmp_path, "other")


def test_the_lock_is_let_go_after_a_failure_and_is_for_its_user_alone(tmp_path: Path) -> None:
    with pytest.raises(ValueError), locked(tmp_path / "state", "default", nothing):
        raise ValueError
    with locked(tmp_path / "state", "default", nothing):
        path = lock_path(tmp_path / "state", "default")

        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_lock_whose_file_was_taken_away_is_none(tmp_path: Path) -> None:
    with locked(tmp_path, "default", nothing):
        # As `down` does with the whole folder.
        lock_path(tmp_path, "default").unlink()
        with locked(tmp_path, "default", nothing):
            assert lock_path(tmp_path, "default").exists()


def test_a_file_that_goes_while_it_is_locked_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lock_path(tmp_path, "default")
    flock = fcntl.flock
    calls: list[int] = []

    def noted(fd: int, how: int) -> None:
        if not calls:
            path.unlink()
        calls.append(how)
        flock(fd, how)

    monkeypatch.setattr(fcntl, "flock", noted)
    with locked(tmp_path, "default", nothing):
        assert path.exists()
    assert len(calls) == 2
