"""A relay passes every byte both ways, the size, the end; its terminal is afterwards as it was."""

import os
import signal
import subprocess
import sys
import termios
from pathlib import Path
from typing import Final

import pytest

from csp.sidecar.relay.user_terminal import RESET
from tests.sidecar.panes import IDLE_BRAIN, ROOT, Brains, Pane, launcher, python
from tests.waiting import wait_until_sync

#: Makes its own terminal pass bytes as they are.
RAW: Final = """
import os, sys, termios
def raw():
    mode = termios.tcgetattr(0)
    mode[0] = mode[1] = mode[3] = 0
    termios.tcsetattr(0, termios.TCSANOW, mode)
raw()
os.write(1, b"READY")
"""
MEGABYTE: Final = bytes(range(256)) * 4096


def test_every_byte_of_the_child_is_shown_as_it_is(tmp_path: Path) -> None:
    code = RAW + (
        "for _ in range(10):\n"
        "  data = bytes(range(256)) * 4096\n"
        "  while data: data = data[os.write(1, data):]\n"
    )
    with Pane(launcher(python(code), tmp_path)) as pane:
        assert pane.wait() == 0
        assert pane.seen == b"READY" + MEGABYTE * 10


def test_every_key_reaches_the_child_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    code = RAW + (
        "keys = open(sys.argv[1], 'wb', 0)\n"
        "left = 1 << 20\n"
        "while left: left -= keys.write(os.read(0, 65536))\n"
    )
    with Pane(launcher(python(code, str(path)), tmp_path)) as pane:
        pane.expect(b"READY")
        pane.press(MEGABYTE)
        assert pane.wait() == 0

    assert path.read_bytes() == MEGABYTE


def test_the_child_has_its_arguments_environment_folder_but_nothing_else(tmp_path: Path) -> None:
    code = (
        "import os, sys, _signal as s\n"
        "fds = sorted(map(int, os.listdir('/proc/self/fd')))[:-1]\n"
        "print(sys.argv[1:], os.getcwd(), fds, os.ttyname(0))\n"
        "print(os.getsid(0) == os.getpid() == os.tcgetpgrp(0), s.pthread_sigmask(0, ()))\n"
        "print([l.split()[1] for l in open('/proc/self/status') if l.startswith('SigIgn')])\n"
    )
    with Pane(launcher(python(code, "a b", "$HOME;", ""), tmp_path)) as pane:
        assert pane.wait() == 0
        shown = pane.seen.decode().splitlines()

    assert shown[0].startswith(f"['a b', '$HOME;', ''] {tmp_path} [0, 1, 2] /dev/pts/")
    assert shown[1] == "True set()"
    assert int(shown[2].strip("[]'"), 16) & 1 << signal.SIGPIPE - 1


def test_signals_are_as_at_first_in_the_child(tmp_path: Path) -> None:
    with Pane(launcher(["/bin/grep", "^Sig[BI]", "/proc/self/status"], tmp_path)) as pane:
        assert pane.wait() == 0

    assert [int(line.split()[1], 16) for line in pane.seen.splitlines()] == [0, 0]


def test_the_child_gets_the_settings_of_the_terminal(tmp_path: Path) -> None:
    with Pane(
        ["/bin/sh", "-c", 'stty erase ^W iutf8; exec "$@"', "sh", *launcher(["/bin/stty"], tmp_path)]
    ) as pane:
        assert pane.wait() == 0

    assert b"erase = ^W" in pane.seen
    assert b"-iutf8" not in pane.seen


def test_the_size_follows_the_terminal(tmp_path: Path) -> None:
    code = (
        "import os, signal, time\n"
        "show = lambda *_: os.write(1, b'size %d %d\\n' % tuple(os.get_terminal_size()))\n"
        "signal.signal(signal.SIGWINCH, show); show()\n"
        "while True: time.sleep(0.05)\n"
    )
    with Brains(tmp_path) as brains, Pane(launcher(python(code), tmp_path, brains.command), 30, 100) as pane:
        start = brains.next().expect_json
        pane.expect(b"size 100 30")
        pane.resize(41, 132)
        pane.expect(b"size 132 41")

        assert start(b"S") | {"pid": 0, "tty": ""} == {
            "pid": 0,
            "tty": "",
            "rows": 30,
            "cols": 100,
            "starts": 1,
            "held_keys": False,
        }


def test_the_brain_is_told_of_a_resize(tmp_path: Path) -> None:
    with Brains(tmp_path) as brains, Pane(launcher(["/bin/cat"], tmp_path, brains.command)) as pane:
        brain = brains.next()
        brain.expect(b"S")
        pane.resize(41, 300)

        assert brain.expect(b"W") == b"\x00\x29\x01\x2c"


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_the_exit_code_is_passed_on(tmp_path: Path, code: int) -> None:
    with Brains(tmp_path) as brains:
        with Pane(launcher(["/bin/sh", "-c", f"exit {code}"], tmp_path, brains.command)) as pane:
            assert pane.wait() == code
            assert not pane.is_raw
        assert brains.next().expect_json(b"X") == {"code": code}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_the_signal_that_killed_the_child_is_passed_on(tmp_path: Path, number: signal.Signals) -> None:
    with Brains(tmp_path) as brains:
        with Pane(
            launcher(
                ["/bin/sh", "-c", f"printf '\\033[?1049h'; kill -{number:d} $$"], tmp_path, brains.command
            )
        ) as pane:
            assert pane.wait() == 128 + number
            assert not pane.is_raw
            assert pane.seen == b"\x1b[?1049h" + RESET
        assert brains.next().expect_json(b"X") == {"signal": number}


def test_the_last_output_is_shown_whole(tmp_path: Path) -> None:
    code = "import os; os.write(1, b'x' * 60000 + b'END')"
    for _ in range(5):
        with Pane(launcher(python(code), tmp_path)) as pane:
            assert pane.wait() == 0
            assert pane.seen == b"x" * 60000 + b"END"


def test_a_grandchild_that_stays_does_not_keep_the_relay(tmp_path: Path) -> None:
    with Pane(launcher(["/bin/sh", "-c", "trap '' HUP; sleep 600 & echo left $!; exit 3"], tmp_path)) as pane:
        assert pane.wait() == 3
        os.kill(int(pane.seen.split()[1]), signal.SIGKILL)


def test_a_child_that_closes_its_terminal_for_a_while_is_waited_for(tmp_path: Path) -> None:
    code = (
        "import os, select\n"
        "name = os.ttyname(0)\n"
        "os.write(1, b'before')\n"
        "os.closerange(0, 3)\n"
        "select.select([], [], [], 0.3)\n"
        "os.write(os.open(name, os.O_RDWR), b'after')\n"
    )
    with Pane(launcher(python(code), tmp_path)) as pane:
        assert pane.wait() == 0

    assert pane.seen == b"beforeafter"


def test_a_missing_command_is_an_error_before_anything_is_started(tmp_path: Path) -> None:
    with Pane(launcher([f"{tmp_path}/none"], tmp_path)) as pane:
        assert pane.wait() == 1
        assert not pane.is_raw

    assert f"FileNotFoundError: [Errno 2] No such file or directory: '{tmp_path}/none'".encode() in pane.seen
    assert not (tmp_path / "state").exists()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with Pane(launcher(["/bin/true"], tmp_path / "none")) as pane:
        assert pane.wait() == 1

    assert f"No such file or directory: '{tmp_path}/none'".encode() in pane.seen


@pytest.mark.parametrize("text", [b"one\ntwo\n", b"no newline"])
def test_a_pipe_can_be_the_keys(tmp_path: Path, text: bytes) -> None:
    run = subprocess.run(
        launcher(["/bin/cat"], tmp_path), cwd=ROOT, input=text, capture_output=True, timeout=20
    )

    assert run.returncode == 0
    # The child's terminal echoes, then cat repeats each line.
    assert run.stdout.replace(b"\r\n", b"\n").count(text) == 2
    assert run.stderr == b""


def test_a_pipe_can_be_the_screen_however_slow(tmp_path: Path) -> None:
    command = launcher(python(RAW + "for _ in range(50): os.write(1, b'x' * 20000)"), tmp_path)
    with Pane(["/bin/sh", "-c", '"$@" | { sleep 1; wc -c; }', "sh", *command]) as pane:
        pane.expect(b"1000005")
        assert pane.wait() == 0


def test_the_brain_has_only_its_own_descriptors(tmp_path: Path) -> None:
    path = tmp_path / "fds"
    brain = ["/bin/sh", "-c", f"ls -l /proc/self/fd >{path}.new; mv {path}.new {path}; exec cat <&3"]
    with Pane(launcher(["/bin/cat"], tmp_path, brain)) as pane:
        wait_until_sync(path.exists)
        lines = [line.split(" -> ") for line in path.read_text().splitlines()[1:]]
        pane.press(b"\x04")
        assert pane.wait() == 0

    fds = {int(name.split()[-1]): target for name, target in lines}
    assert fds[0] == "/dev/null"
    assert fds[2] == str(tmp_path / "brain.log")
    assert fds[3].startswith("socket:")
    assert {target.partition(":")[0] for fd, target in fds.items() if fd > 3} <= {
        f"/proc/{os.getpid()}/fd"
    } | {target for target in fds.values() if target.startswith("/proc/")}


def test_a_relay_without_any_brain_relays(tmp_path: Path) -> None:
    with Pane(launcher(["/bin/cat"], tmp_path, [f"{tmp_path}/none"])) as pane:
        pane.wait_raw()
        pane.press(b"word\r")
        pane.expect(b"word\r\nword\r\n")
        pane.press(b"\x04")

        assert pane.wait() == 0


def test_the_shell_does_not_inherit_a_terminal_that_does_not_block(tmp_path: Path) -> None:
    check = "import os; print('blocking', os.get_blocking(0), os.get_blocking(1))"
    command = launcher(["/bin/echo", "x"], tmp_path)
    script = ["/bin/sh", "-c", '"$@"; exec $PYTHON -c "$CHECK"', "sh", *command]
    env = ["/usr/bin/env", f"PYTHON={sys.executable}", f"CHECK={check}"]
    with Pane([*env, *script]) as pane:
        pane.expect(b"blocking True True")
        assert pane.wait() == 0


def test_the_relay_takes_little_more_memory_than_an_interpreter(tmp_path: Path) -> None:
    bare = subprocess.run(
        python("import time; print(open('/proc/self/statm').read().split()[1])"),
        capture_output=True,
        check=True,
    )
    with Pane(launcher(["/bin/cat"], tmp_path, IDLE_BRAIN)) as pane:
        pane.wait_raw()
        pane.press(b"word\r")
        pane.expect(b"word\r\nword\r\n")
        pages = int(Path(f"/proc/{pane.process.pid}/statm").read_text().split()[1])

    assert pages < 1.25 * int(bare.stdout)


def test_keys_typed_before_the_terminal_is_raw_are_not_lost(tmp_path: Path) -> None:
    with Pane(launcher(["/bin/cat"], tmp_path)) as pane:
        pane.press(b"early\n")
        pane.expect(b"early")
        pane.expect(b"early")
        pane.press(b"\x04")
        assert pane.wait() == 0
        assert termios.tcgetattr(pane.slave)[3] & termios.ECHO
