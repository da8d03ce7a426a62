"""Signals, stop and continue, a terminal that goes away."""

import os
import signal
import subprocess
from pathlib import Path
from typing import Final

import pytest

from csp.sidecar.relay import user_terminal
from csp.sidecar.relay.user_terminal import RESET
from tests.sidecar.panes import Brains, Pane, launcher, python
from tests.waiting import wait_until_sync

#: Says which signals come; SIGTERM and SIGHUP end it.
SAYING: Final = """
import os, signal, time
def say(number, _):
    os.write(1, b'<%d>' % number)
    if number in (1, 15): os._exit(40 + number)
for number in (1, 2, 3, 15, 18): signal.signal(number, say)
os.write(1, b'READY')
while True: time.sleep(0.05)
"""


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def relay_of(pane: Pane) -> int:
    """Return the relay that a shell in the pane has started."""
    (pid,) = subprocess.run(
        ["pgrep", "-P", str(pane.process.pid)], capture_output=True, check=True
    ).stdout.split()
    return int(pid)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT])
def test_a_signal_goes_to_the_child(tmp_path: Path, number: signal.Signals) -> None:
    with Pane(launcher(python(SAYING), tmp_path)) as pane:
        pane.expect(b"READY")
        pane.wait_raw()
        pane.process.send_signal(number)
        pane.expect(b"<%d>" % number)
        assert pane.process.poll() is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_relay_ends_after_the_child_does(tmp_path: Path, number: signal.Signals) -> None:
    with Pane(launcher(python(SAYING), tmp_path)) as pane:
        pane.expect(b"READY")
        pane.wait_raw()
        pane.process.send_signal(number)

        assert pane.wait() == 40 + number
        assert not pane.is_raw
        assert list((tmp_path / "state").iterdir()) == []


def test_the_brain_can_send_the_child_a_signal(tmp_path: Path) -> None:
    with Brains(tmp_path) as brains, Pane(launcher(python(SAYING), tmp_path, brains.command)) as pane:
        brain = brains.next()
        pane.expect(b"READY")
        brain.send(b"T", (2).to_bytes(4, "big"))
        pane.expect(b"<2>")


def test_a_closed_terminal_ends_the_child(tmp_path: Path) -> None:
    path = tmp_path / "said"
    file = f"os.open({str(path)!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)"
    code = SAYING.replace("os.write(1, b'<%d>'", f"os.write({file}, b'<%d>'")
    with Pane(launcher(python(code), tmp_path)) as pane:
        pane.expect(b"READY")
        pane.wait_raw()
        pane.close_terminal()
        pane.process.wait(120)

        assert "<1>" in path.read_text()
        assert pane.process.returncode == 41


def test_a_child_that_outlives_its_terminal_does_not_keep_the_relay(tmp_path: Path) -> None:
    code = (
        "import os, select, signal\n"
        "signal.signal(1, signal.SIG_IGN)\n"
        "os.write(1, b'READY')\n"
        "select.select([], [], [], 8)\n"
    )
    with Pane(launcher(python(code), tmp_path)) as pane:
        pane.expect(b"READY")
        pane.wait_raw()
        pane.close_terminal()
        pane.process.wait(120)
        assert pane.process.returncode == 129


def test_ctrl_c_is_a_key_of_the_child(tmp_path: Path) -> None:
    with Pane(launcher(["/bin/sleep", "60"], tmp_path)) as pane:
        pane.wait_raw()
        pane.press(b"\x03")

        assert pane.wait() == 128 + signal.SIGINT


def test_a_child_that_stops_with_nobody_to_continue_it_is_continued(tmp_path: Path) -> None:
    code = SAYING.replace("while True", "os.kill(os.getpid(), signal.SIGSTOP)\nwhile True")
    with Brains(tmp_path) as brains, Pane(launcher(python(code), tmp_path, brains.command)) as pane:
        pane.expect(b"<18>")
        brain = brains.next()

        assert [brain.expect(b"P"), brain.expect(b"P")] == [b"stopped", b"kept"]
        pane.wait_raw()


SHELL: Final = ["/bin/bash", "--norc", "--noprofile", "-i"]


def shell(pane: Pane, command: list[str]) -> None:
    """Type a command at a bash with job control."""
    pane.press(b"PS1='PROMPT''> '; set +H; bind 'set enable-bracketed-paste off'\n")
    pane.expect(b"PROMPT> ")
    pane.press(" ".join(f"'{word}'" for word in (w.replace("'", "'\\''") for w in command)).encode() + b"\n")


def stopping(how: str) -> list[str]:
    # The shell shows this text too, so what the test waits for must not be in it.
    last = "os.write(1, b'x' * 60000 + b'LAST')"
    code = f"import os, signal\nos.write(1, b'U' + b'P')\nos.read(0, 1)\n{last}\n{how}\n"
    return python(code + "os.write(1, b'BA' + b'CK')\nos.read(0, 9)")


@pytest.mark.parametrize("how", ["os.kill(os.getpid(), signal.SIGSTOP)", "os.kill(0, signal.SIGTSTP)"])
def test_a_child_that_stops_gives_the_terminal_to_the_shell(tmp_path: Path, how: str) -> None:
    with Brains(tmp_path) as brains, Pane(SHELL) as pane:
        shell(pane, launcher(stopping(how), tmp_path, brains.command))
        brain = brains.next()
        pane.expect(b"UP")
        pane.press(b"\r")
        pane.expect(b"xLAST")
        pane.expect(b"Stopped")
        assert brain.expect(b"P") == b"stopped"
        pane.expect(b"PROMPT> ")
        pane.press(b"echo shell$((1+1))\n")
        pane.expect(b"shell2\r\n")
        pane.resize(33, 99)
        pane.press(b"fg\n")
        pane.expect(b"BACK")

        assert brain.expect(b"W") == b"\x00\x21\x00\x63"
        assert brain.expect(b"P") == b"continued"
        pane.press(b"\r")
        pane.expect(b"PROMPT> ")
        pane.press(b"echo code$?\n")
        pane.expect(b"code0")


def test_ctrl_z_in_a_child_that_reads_lines_stops_it_under_a_shell(tmp_path: Path) -> None:
    with Pane(SHELL) as pane:
        shell(pane, launcher(["/bin/cat"], tmp_path))
        pane.expect(b"\r\n")
        wait_until_sync(lambda: list((tmp_path / "state").glob("tty*")))
        pane.press(b"one\r")
        pane.expect(b"one\r\none\r\n")
        pane.press(b"\x1a")
        pane.expect(b"Stopped")
        pane.expect(b"PROMPT> ")
        pane.press(b"fg\n")
        pane.expect(b"\r\n")
        wait_until_sync(lambda: pane.is_raw)
        pane.press(b"two\r")
        pane.expect(b"two\r\ntwo\r\n")


def test_a_relay_that_is_stopped_from_outside_stops_like_any_job(tmp_path: Path) -> None:
    with Pane(SHELL) as pane:
        shell(pane, launcher(["/bin/cat"], tmp_path))
        wait_until_sync(lambda: list((tmp_path / "state").glob("tty*")))
        relay = relay_of(pane)
        os.kill(relay, signal.SIGTSTP)
        pane.expect(b"Stopped")
        pane.press(b"fg\n")
        pane.expect(b"fg\r\n")
        wait_until_sync(lambda: pane.is_raw)
        pane.press(b"two\r")
        pane.expect(b"two\r\ntwo\r\n")


def test_vi_stops_as_it_does_without_us(tmp_path: Path) -> None:
    with Pane(SHELL) as pane:
        shell(pane, launcher(["/usr/bin/vi", "file"], tmp_path))
        pane.expect(b"~")
        pane.press(b"itext\x1b\x1a")
        pane.expect(b"Stopped")
        pane.expect(b"PROMPT> ")
        pane.press(b"fg\n")
        pane.expect(b"~")
        pane.press(b":wq\r")
        pane.expect(b"PROMPT> ")

    assert (tmp_path / "file").read_text() == "text\n"


def test_after_a_kill_the_next_start_resets_the_terminal(tmp_path: Path) -> None:
    on = "import os, signal; os.write(1, b'\\x1b[?1049h\\x1b[?1000hUP'); signal.pause()"
    with Pane(["/bin/sh"]) as pane:
        for name in ("first", "second"):
            pane.press(f"echo {name}\n".encode())
            pane.expect(f"{name}\r\n".encode())
        pane.press(f"exec 9>&1; {join(launcher(python(on), tmp_path))}\n".encode())
        pane.expect(b"UP")
        wait_until_sync(lambda: pane.is_raw)
        os.kill(relay_of(pane), signal.SIGKILL)
        pane.expect(b"Killed")
        assert pane.is_raw
        pane.press(f"{join(launcher(['/bin/echo', 'next'], tmp_path))}\n".encode())
        pane.expect(RESET)
        pane.expect(b"next\r\n")
        wait_until_sync(lambda: not pane.is_raw)

        assert list((tmp_path / "state").iterdir()) == []


def join(command: list[str]) -> str:
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in command)


def test_mend_leaves_the_terminal_of_a_living_relay_alone(tmp_path: Path) -> None:
    with Pane(launcher(["/bin/cat"], tmp_path)) as pane:
        pane.wait_raw()

        assert not user_terminal.repair(pane.slave, str(tmp_path / "state"))
        assert pane.is_raw
