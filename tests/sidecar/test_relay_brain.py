"""The relay with its brain: what each is told, what a dead brain costs, what a brain may do."""

import json
import os
import signal
import struct
import time
from pathlib import Path
from typing import Final

import pytest

from csp.sidecar.relay.input_queue import MAX_HOLD_S
from csp.sidecar.relay.user_terminal import RESET
from tests.sidecar.panes import TIMEOUT_S, Brain, Brains, Pane, launcher, python
from tests.sidecar.test_relay import RAW
from tests.waiting import wait_until_sync

#: Repeats what it is given, as it is.
ECHO: Final = RAW + "while True: os.write(1, os.read(0, 65536))"
#: Writes its reads to a file, slowly, in small pieces.
NUMBERS: Final = "import time\nn = 0\nwhile True:\n  print(n := n + 1, flush=True)\n  time.sleep(0.001)"


def typed(brain: Brain, data: bytes, tag: int = 1) -> None:
    brain.send(b"I", tag.to_bytes(4, "big") + data)


def test_the_brain_is_told_of_output_keys_and_the_end_in_order(tmp_path: Path) -> None:
    with Brains(tmp_path) as brains, Pane(launcher(python(ECHO), tmp_path, brains.command)) as pane:
        brain = brains.next()
        pane.expect(b"READY")
        pane.wait_raw()
        pane.press(b"key\x1b[A")

        assert brain.next()[0] == b"S"
        assert brain.next() == (b"O", b"READY")
        assert brain.next() == (b"K", b"key\x1b[A")
        assert brain.next() == (b"O", b"key\x1b[A")
        pane.process.send_signal(signal.SIGTERM)
        assert brain.expect_json(b"X") == {"signal": 15}
        with pytest.raises(EOFError):
            brain.next()


def test_what_the_brain_types_reaches_the_child_whole(tmp_path: Path) -> None:
    paste = bytes(range(256)) * 400
    with Brains(tmp_path) as brains, Pane(launcher(python(ECHO), tmp_path, brains.command)) as pane:
        brain = brains.next()
        pane.expect(b"READY")
        typed(brain, paste, tag=77)
        pane.expect(paste)

        assert int.from_bytes(brain.expect(b"D"), "big") == 77


def test_keys_pressed_during_a_paste_come_after_it(tmp_path: Path) -> None:
    paste = b"<" + b"p" * 100_000 + b">"
    code = RAW + "os.read(0, 1); os.write(1, b'GO')\nwhile True: os.write(1, os.read(0, 4096))"
    with Brains(tmp_path) as brains, Pane(launcher(python(code), tmp_path, brains.command)) as pane:
        brain = brains.next()
        pane.expect(b"READY")
        pane.wait_raw()
        # The child reads one byte only, so the paste cannot be written whole before the keys come.
        typed(brain, b"!" + paste)
        pane.expect(b"GO")
        pane.press(b"keys")
        pane.expect(paste + b"keys")


def test_a_paste_into_a_child_that_does_not_read_waits_without_delaying_its_output(tmp_path: Path) -> None:
    code = RAW + "for n in range(200): os.write(1, b'%d.' % n)\nos.read(0, 1)\nwhile True: os.read(0, 65536)"
    with Brains(tmp_path) as brains, Pane(launcher(python(code), tmp_path, brains.command)) as pane:
        brain = brains.next()
        typed(brain, b"p" * 500_000)
        pane.expect(b"199.")
        assert brain.expect(b"D") == b"\x00\x00\x00\x01"


def test_held_keys_wait_for_their_release(tmp_path: Path) -> None:
    with Brains(tmp_path) as brains, Pane(launcher(python(ECHO), tmp_path, brains.command)) as pane:
        brain = brains.next()
        pane.expect(b"READY")
        pane.wait_raw()
        began = time.monotonic()
        brain.send(b"H", struct.pack("!d", MAX_HOLD_S))
        typed(brain, b"first")
        brain.expect(b"D")
        pane.press(b"one")
        assert brain.expect(b"K") == b"one"
        typed(brain, b"second", tag=2)
        brain.expect(b"D")
        is_held = time.monotonic() - began < MAX_HOLD_S
        brain.send(b"R")
        while len(pane.seen) < len(b"firstsecondone"):
            assert pane.read(TIMEOUT_S), pane.seen

        # On a machine so busy that the longest hold was over before the second input, the key came first.
        assert pane.seen == b"firstsecondone" or (not is_held and pane.seen == b"firstonesecond")


def test_held_keys_are_passed_on_in_time_even_if_the_brain_has_died(tmp_path: Path) -> None:
    """They were to be held for ten minutes; that a hold ends when it should is tested in test_loop.py."""
    with Brains(tmp_path) as brains, Pane(launcher(python(ECHO), tmp_path, brains.command)) as pane:
        brain = brains.next()
        pane.expect(b"READY")
        pane.wait_raw()
        began = time.monotonic()
        brain.send(b"H", struct.pack("!d", 600.0))
        typed(brain, b"paste")
        brain.expect(b"D")
        pane.press(b"one")
        brain.expect(b"K")
        brain.kill()
        is_held = brains.next().expect_json(b"S")["held_keys"]
        assert is_held or time.monotonic() - began >= MAX_HOLD_S
        pane.press(b"two")
        pane.expect(b"pasteonetwo")

        assert time.monotonic() - began >= MAX_HOLD_S
        pane.press(b"three")
        pane.expect(b"three")


def test_a_dead_brain_is_replaced_and_told_what_its_predecessor_knew(tmp_path: Path) -> None:
    with Brains(tmp_path) as brains, Pane(launcher(python(ECHO), tmp_path, brains.command)) as pane:
        first = brains.next()
        pane.expect(b"READY")
        pane.wait_raw()
        first.send(b"N", b"old note")
        first.send(b"N", b"note \x00\xff")
        typed(first, b"output")
        first.output_until(b"output")
        first.kill()
        second = brains.next()
        start = second.next()

        assert start[0] == b"S"
        assert json.loads(start[1])["starts"] == 2
        assert second.next() == (b"N", b"note \x00\xff")
        assert second.next() == (b"O", b"READYoutput")
        typed(second, b"again")
        pane.expect(b"outputagain")


def test_a_new_brain_is_not_told_of_the_inputs_of_the_old(tmp_path: Path) -> None:
    code = (
        "import _signal\n_signal.pthread_sigmask(_signal.SIG_BLOCK, [10])\n"
        + RAW
        + "_signal.sigwait([10])\nwhile True: os.read(0, 65536)"
    )
    with Brains(tmp_path) as brains, Pane(launcher(python(code), tmp_path, brains.command)) as pane:
        first = brains.next()
        pane.expect(b"READY")
        typed(first, b"p" * 300_000, tag=1)
        first.send(b"A", b'{"argv": ["/none"]}')
        assert first.expect(b"P").startswith(b"not restarted")
        first.kill()
        brain = brains.next()
        typed(brain, b"x", tag=9)
        brain.send(b"T", (10).to_bytes(4, "big"))

        assert brain.expect(b"D") == (9).to_bytes(4, "big")


def test_a_new_brain_gets_the_newest_output_after_a_gap(tmp_path: Path) -> None:
    code = RAW + (
        "os.write(1, b'A' * 10)\n"
        "for _ in range(256): os.write(1, b'x' * 2048)\n"
        "os.write(1, b'END')\n"
        "os.read(0, 1)\n"
    )
    with Brains(tmp_path) as brains, Pane(launcher(python(code), tmp_path, brains.command)) as pane:
        first = brains.next()
        pane.expect(b"END")
        first.kill()
        second = brains.next()
        second.expect(b"S")
        gap, count = second.next()
        output = second.output_until(b"END")

        assert gap == b"G"
        assert len(output) == 256 * 1024
        assert int.from_bytes(count, "big") + len(output) == len(b"READY") + 10 + 2048 * 256 + 3
        assert output == b"x" * (256 * 1024 - 3) + b"END"


def test_the_child_redraws_for_a_new_brain(tmp_path: Path) -> None:
    code = (
        "import os, signal, time\n"
        # A second signal may come while the first is being answered; print() is not made for that.
        "def tell(*_): os.write(1, b'size %d\\n' % os.get_terminal_size().lines)\n"
        "signal.signal(signal.SIGWINCH, tell)\n"
        "os.write(1, b'READY\\n')\n"
        "while True: time.sleep(0.05)\n"
    )
    with Brains(tmp_path) as brains, Pane(launcher(python(code), tmp_path, brains.command)) as pane:
        first = brains.next()
        pane.expect(b"READY")
        first.send(b"J")
        pane.expect(b"size 23\r\nsize 24\r\n")
        first.kill()
        brains.next()
        pane.expect(b"size 23\r\nsize 24\r\n")


def test_brains_die_while_the_child_writes(tmp_path: Path) -> None:
    with Brains(tmp_path) as brains, Pane(launcher(python(NUMBERS), tmp_path, brains.command)) as pane:
        shown = b""
        for number in range(1, 4):
            brain = brains.next()
            assert brain.expect_json(b"S")["starts"] == number
            brain.send(b"N", b"%d" % number)
            # Nothing, which a child that never reads has read all the same.
            typed(brain, b"")
            brain.expect(b"D")
            brain.kill()
            while data := pane.read(0.0):
                shown += data
        brain = brains.next()
        assert brain.expect(b"N") == b"3"
        while len(shown) < 10_000:
            shown += pane.read()
        lines = [line for line in shown.split(b"\r\n")[:-1] if line]

        assert [int(line) for line in lines] == list(range(1, len(lines) + 1))


def test_a_brain_that_talks_nonsense_does_no_harm(tmp_path: Path) -> None:
    with Brains(tmp_path) as brains, Pane(launcher(python(ECHO), tmp_path, brains.command)) as pane:
        brain = brains.next()
        pane.expect(b"READY")
        for kind, payload in [
            *(
                (b"H", b"short"),
                (b"T", b"\x7f\xff\xff\xff"),
                (b"A", b"not json"),
                (b"A", b"[]"),
                (b"A", b'{"argv": 7}'),
            ),
            *((b"A", b'{"argv": []}'), (b"?", b"unknown"), (b"N", bytes(300_000)), (b"I", b"")),
        ]:
            brain.send(kind, payload)
        typed(brain, b"still here")
        pane.expect(b"still here")
        brain.send(b"O" * 5 + b"")  # a length past all bounds
        assert brains.next().expect_json(b"S")["starts"] == 2


def test_a_brain_that_hangs_up_but_stays_is_killed(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    brain = ["/bin/sh", "-c", f"echo $$ >>{pids}; exec 3>&-; exec sleep 60"]
    with Pane(launcher(["/bin/cat"], tmp_path, brain)):
        wait_until_sync(lambda: pids.exists() and len(pids.read_text().split()) >= 2, 60)
        first = int(pids.read_text().split()[0])
        wait_until_sync(lambda: not os.path.exists(f"/proc/{first}"), 60)
    for pid in pids.read_text().split():
        if os.path.exists(f"/proc/{pid}"):
            os.kill(int(pid), signal.SIGKILL)


def test_brains_that_cannot_live_are_started_less_and_less_often(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    brain = ["/bin/sh", "-c", f"date +%s.%N >>{starts}"]
    with Pane(launcher(["/bin/cat"], tmp_path, brain)):
        wait_until_sync(lambda: starts.exists() and len(starts.read_text().split()) >= 4, 60)
    at = [float(line) for line in starts.read_text().split()[:4]]

    # How much longer each wait is says tests/sidecar/test_relay_socket.py.
    assert at[3] - at[2] > 0.35
    assert at[1] - at[0] > 0.09


def test_a_brain_can_start_the_child_again(tmp_path: Path) -> None:
    code = (
        "import os, sys\n"
        "print('UP', sys.argv[1], os.environ.get('WHO'), *os.get_terminal_size(), flush=True)\n"
        "sys.stdin.read()\n"
    )
    first, second, third = (python(code, name) for name in ("one", "two", "three"))
    with Brains(tmp_path) as brains, Pane(launcher(first, tmp_path, brains.command), 30, 100) as pane:
        brain = brains.next()
        old = brain.expect_json(b"S")["pid"]
        pane.expect(b"UP one None 100 30")
        brain.send(b"A", json.dumps({"argv": second, "env": {"WHO": "me"}}).encode())
        pane.expect(RESET)
        pane.expect(b"UP two me 100 30")
        assert brain.expect(b"P") == b"restarted"
        assert not os.path.exists(f"/proc/{old}")
        brain.send(b"A", json.dumps({"argv": third}).encode())
        pane.expect(b"UP three None")
        assert brain.expect(b"P") == b"restarted"
        pane.press(b"\x04")

        assert pane.wait() == 0
        assert brain.expect_json(b"X") == {"code": 0}


@pytest.mark.full
def test_a_child_that_will_not_go_is_killed_for_the_next(tmp_path: Path) -> None:
    code = (
        "import os, signal, time\n"
        "for n in (1, 15): signal.signal(n, lambda n, _: os.write(1, b'<%d>' % n))\n"
        "os.write(1, b'UP')\n"
        "while True: time.sleep(0.05)\n"
    )
    with Brains(tmp_path) as brains, Pane(launcher(python(code), tmp_path, brains.command)) as pane:
        brain = brains.next()
        pane.expect(b"UP")
        began = time.monotonic()
        brain.send(b"A", json.dumps({"argv": ["/bin/echo", "next"]}).encode())
        pane.expect(b"<1><15>")
        pane.expect(b"next\r\n")

        assert time.monotonic() - began > 2.5
        assert pane.wait() == 0


def test_a_child_is_not_ended_for_one_that_cannot_be_started(tmp_path: Path) -> None:
    with Brains(tmp_path) as brains, Pane(launcher(["/bin/cat"], tmp_path, brains.command)) as pane:
        brain = brains.next()
        brain.send(b"A", json.dumps({"argv": [f"{tmp_path}/none"]}).encode())
        assert brain.expect(b"P") == f"not restarted: cannot execute '{tmp_path}/none'".encode()
        pane.press(b"word\r")
        pane.expect(b"word\r\nword\r\n")
