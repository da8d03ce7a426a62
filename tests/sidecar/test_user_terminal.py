"""A terminal is put back as it was, whoever made it raw."""

import errno
import os
import pty
import select
import struct
import subprocess
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from csp.sidecar.relay.user_terminal import RESET, UserTerminal, repair


@pytest.fixture
def tty() -> Iterator[tuple[int, int]]:
    master, slave = pty.openpty()
    yield master, slave
    os.close(master)
    os.close(slave)


def settings(fd: int) -> list[Any]:
    return termios.tcgetattr(fd)


def close(terminal: UserTerminal, slave: int) -> None:
    """Let go of what a relay's end would close."""
    for fd in {terminal.keys, terminal.screen} - {slave}:
        os.close(fd)


def test_raw_is_what_stty_calls_raw(tty: tuple[int, int], tmp_path: Path) -> None:
    _, slave = tty
    on = "inlcr igncr ignbrk brkint parmrk istrip echonl"
    subprocess.run(["stty", *on.split()], stdin=slave, check=True)
    terminal = UserTerminal(slave, slave, str(tmp_path))
    terminal.make_raw()
    ours = subprocess.run(["stty", "-a"], stdin=slave, capture_output=True, text=True, check=True).stdout
    terminal.close()
    close(terminal, slave)

    for word in (
        "-icanon",
        "-isig",
        "-echo",
        "-iexten",
        "-icrnl",
        "-inlcr",
        "-igncr",
        "-ignbrk",
        "-brkint",
        "-parmrk",
        "-istrip",
        "-echonl",
        "-ixon",
        "-opost",
        "cs8",
        "min = 1",
        "time = 0",
    ):
        assert word in ours


def test_it_is_as_before_after_restore(tty: tuple[int, int], tmp_path: Path) -> None:
    _, slave = tty
    subprocess.run(["stty", "erase", "^W", "-onlcr"], stdin=slave, check=True)
    before = settings(slave)
    terminal = UserTerminal(slave, slave, str(tmp_path))
    terminal.make_raw()
    assert settings(slave) != before
    terminal.restore()
    assert settings(slave) == before
    terminal.make_raw()
    assert settings(slave) != before
    terminal.close()
    close(terminal, slave)

    assert settings(slave) == before
    assert list(tmp_path.iterdir()) == []


def test_a_record_that_nobody_holds_is_put_right_once(tty: tuple[int, int], tmp_path: Path) -> None:
    master, slave = tty
    subprocess.run(["stty", "erase", "^W"], stdin=slave, check=True)
    before = settings(slave)
    terminal = UserTerminal(slave, slave, str(tmp_path))
    terminal.make_raw()
    (record,) = tmp_path.iterdir()
    assert record.stat().st_mode & 0o777 == 0o600
    assert not repair(slave, str(tmp_path))
    os.close(terminal._record)  # what a kill does
    close(terminal, slave)

    assert repair(slave, str(tmp_path))
    assert settings(slave) == before
    assert os.read(master, 4096) == RESET
    assert list(tmp_path.iterdir()) == []
    assert not repair(slave, str(tmp_path))


def test_a_terminal_that_was_left_raw_is_put_right_before_it_is_made_raw(
    tty: tuple[int, int], tmp_path: Path
) -> None:
    _, slave = tty
    before = settings(slave)
    killed = UserTerminal(slave, slave, str(tmp_path))
    killed.make_raw()
    os.close(killed._record)
    close(killed, slave)
    (tmp_path / f"tty{os.ttyname(slave).replace('/', '-')}.{os.getpid()}").rename(
        tmp_path / f"tty{os.ttyname(slave).replace('/', '-')}.1"
    )
    terminal = UserTerminal(slave, slave, str(tmp_path))
    terminal.make_raw()
    terminal.close()
    close(terminal, slave)

    assert terminal.before == settings(slave) == before


def test_a_signal_while_a_terminal_is_set_is_no_failure(tty: tuple[int, int], tmp_path: Path) -> None:
    _, slave = tty
    terminal = UserTerminal(slave, slave, str(tmp_path))
    with mock.patch.object(termios, "tcsetattr", side_effect=[termios.error(errno.EINTR, ""), None]) as tried:
        terminal.make_raw()
    assert tried.call_count == 2
    with (
        mock.patch.object(termios, "tcsetattr", side_effect=termios.error(errno.EIO, "gone")),
        pytest.raises(OSError, match="gone"),
    ):
        terminal.make_raw()
    terminal.close()
    close(terminal, slave)


def test_a_terminal_of_our_own_takes_more_at_a_time_than_one_that_others_share(
    tty: tuple[int, int], tmp_path: Path
) -> None:
    """A descriptor that is shared may block, but not for so few bytes."""
    _, slave = tty
    reader, writer = os.pipe()
    ours, shared = UserTerminal(slave, slave, str(tmp_path)), UserTerminal(slave, writer, str(tmp_path))

    assert (ours._write_bytes, shared._write_bytes) == (64 * 1024, select.PIPE_BUF)
    assert not os.get_blocking(ours.screen) and not os.get_blocking(ours.keys)
    assert shared.screen == writer
    for terminal in (ours, shared):
        close(terminal, slave)
    os.close(reader)


def test_the_size_is_that_of_whichever_end_is_a_terminal(tty: tuple[int, int], tmp_path: Path) -> None:
    _, slave = tty
    termios.tcsetwinsize(slave, (33, 77))
    reader, writer = os.pipe()
    wide = UserTerminal(reader, slave, str(tmp_path))

    assert wide.size() == struct.pack("HHHH", 33, 77, 0, 0)
    assert UserTerminal(reader, writer, str(tmp_path)).size() is None
    assert not wide.is_tty
    close(wide, slave)
    os.close(writer)


def test_the_record_of_another_terminal_is_left_alone(tty: tuple[int, int], tmp_path: Path) -> None:
    master, slave = pty.openpty()
    terminal = UserTerminal(slave, slave, str(tmp_path))
    terminal.make_raw()
    os.close(terminal._record)
    close(terminal, slave)

    assert not repair(tty[1], str(tmp_path))
    assert len(list(tmp_path.iterdir())) == 1
    os.close(master)
    os.close(slave)


@pytest.mark.parametrize("record", [b"", b"nonsense", b"1 2 3", b"1 2 ff", b"1 2 3 4 5 6 zz", b"\xff\xfe"])
def test_a_broken_record_does_no_harm(tty: tuple[int, int], tmp_path: Path, record: bytes) -> None:
    _, slave = tty
    before = settings(slave)
    path = tmp_path / f"tty{os.ttyname(slave).replace('/', '-')}.1"
    path.write_bytes(record)
    repair(slave, str(tmp_path))

    assert settings(slave) == before
    assert not path.exists()


def test_a_folder_that_cannot_be_made_is_no_reason_not_to_run(tty: tuple[int, int], tmp_path: Path) -> None:
    _, slave = tty
    (tmp_path / "file").touch()
    terminal = UserTerminal(slave, slave, str(tmp_path / "file"))
    before = settings(slave)
    terminal.make_raw()
    assert settings(slave) != before
    terminal.close()
    close(terminal, slave)

    assert settings(slave) == before


def test_what_a_full_terminal_does_not_take_is_kept(tty: tuple[int, int], tmp_path: Path) -> None:
    master, slave = tty
    terminal = UserTerminal(slave, slave, str(tmp_path))
    terminal.make_raw()
    data = bytes(range(256)) * 1000
    terminal.show(data)
    assert terminal.unshown
    shown = b""
    while len(shown) < len(data):
        shown += os.read(master, 65536)
        terminal.show()
    terminal.close()
    close(terminal, slave)

    assert shown == data


def test_the_reset_leaves_the_cursor_where_it_is_when_nothing_was_on() -> None:
    """tmux answers: it knows the sequences, and where its cursor is."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="csp-") as folder:
        tmux = ["tmux", "-S", f"{folder}/tmux", "-f", "/dev/null"]
        script = f"printf 'one\\ntwo'; printf '{octal(RESET)}'; printf three; exec sleep 60"
        subprocess.run([*tmux, "new-session", "-d", "-x", "80", "-y", "24", script], check=True)
        try:
            text = ""
            while "three" not in text:
                text = subprocess.run([*tmux, "capture-pane", "-p"], capture_output=True, text=True).stdout
        finally:
            subprocess.run([*tmux, "kill-server"], check=True)

    assert text.splitlines()[:2] == ["one", "twothree"]


def octal(data: bytes) -> str:
    return "".join(f"\\{byte:03o}" for byte in data)
