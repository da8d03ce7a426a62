"""The relay's loop in this process, turn by turn, on a clock that stands until it is moved."""

import json
import os
import select
import signal
import socket
import struct
import termios
import tty
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from unittest import mock

import pytest

from csp.sidecar.relay import relay_frames, relay_loop
from csp.sidecar.relay.input_queue import NEVER
from csp.sidecar.relay.pty_processes import SpawnPlan
from csp.sidecar.relay.relay_frames import Decoder, encode
from csp.sidecar.relay.relay_loop import Relay
from csp.sidecar.relay.user_terminal import CLEAR, RESET, Attributes, UserTerminal

CHILD: Final = 2**22 + 1
WITHIN_S: Final = 60.0
SIZE: Final = struct.pack("HHHH", 24, 80, 0, 0)


class Bench:
    """A relay with a pipe for the person's keys, one for the screen, a terminal whose child is the test."""

    def __init__(self, folder: Path) -> None:
        self.now = 1000.0
        self.master, self.child = os.openpty()
        tty.setraw(self.child)
        termios.tcsetwinsize(self.child, (24, 80))
        os.set_blocking(self.master, False)
        os.set_blocking(self.child, False)
        keys, self.keys = os.pipe()
        self.screen, screen = os.pipe()
        os.set_blocking(self.screen, False)
        ours, self.brain = socket.socketpair()
        ours.setblocking(False)
        self.brain.setblocking(False)
        self.killed: list[int] = []
        self._decoder = Decoder()
        self._fds = {self.master, self.child, keys, self.keys, self.screen, screen}
        plan = SpawnPlan(
            child=CHILD,
            master=self.master,
            argv=["/bin/cat"],
            env={"A": "1"},
            cwd=str(folder),
            brain_argv=["/none/such"],
            state=str(folder),
        )
        self.relay = Relay(plan, UserTerminal(keys, screen, str(folder)))
        self.relay._link.adopt(0, ours.detach(), self.now)
        self.relay._greet()
        self.told()

    def close(self) -> None:
        self.brain.close()
        self.relay._link.lose(self.now)
        self._fds |= {self.relay._signals.fd, self.relay._signals._woken, self.relay._child.master}
        for fd in self._fds:
            try:
                os.close(fd)
            except OSError:
                continue

    def turn(self, after_s: float = 0.0, turns: int = 3) -> None:
        self.now += after_s
        for _ in range(turns):
            self.relay._turn()

    def say(self, kind: bytes, payload: bytes = b"") -> None:
        """Have the brain say something."""
        self.brain.send(encode(kind, payload))
        self.turn()

    def told(self) -> list[tuple[bytes, bytes]]:
        """Return what the brain has been told since the last time."""
        try:
            return self._decoder.feed(self.brain.recv(1 << 20))
        except BlockingIOError:
            return []

    def told_of(self, kind: bytes) -> list[bytes]:
        return [payload for found, payload in self.told() if found == kind]

    def write(self, data: bytes) -> None:
        """Have the child write this; the kernel takes a moment to pass it on."""
        os.write(self.child, data)
        assert select.select([self.master], [], [], WITHIN_S)[0]

    def read_child(self) -> bytes:
        """Return what the child reads next."""
        assert select.select([self.child], [], [], WITHIN_S)[0], "the child has nothing to read"
        return os.read(self.child, 1 << 16)

    def typed(self, count: int) -> bytes:
        """Return what the child has been typed, at least `count` bytes."""
        found = b""
        while len(found) < count:
            found += self.read_child()
        return found

    def is_typed(self) -> bool:
        return not self.relay._child.has_read()

    def shown(self) -> bytes:
        try:
            return os.read(self.screen, 1 << 16)
        except BlockingIOError:
            return b""

    def restart(self) -> None:
        """End the child, as its brain has asked for, and have another one start."""
        self.say(relay_frames.AGAIN, b'{"argv": ["/bin/cat"]}')
        self.relay._note_end(0)
        self.relay._is_master_open = False


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    made: Bench | None = None
    real = select.select

    turns = iter(range(5000))

    def soon(reads: Any, writes: Any, others: Any, timeout: float | None = None) -> Any:
        assert next(turns, None) is not None, "the loop turns for ever"
        return real(reads, writes, others, 0.002 if timeout is None else min(timeout, 0.002))

    clock: Any = SimpleNamespace(monotonic=lambda: made.now if made else 1000.0)
    monkeypatch.setattr(relay_loop, "time", clock)
    monkeypatch.setattr(relay_loop, "select", SimpleNamespace(select=soon))
    made = Bench(tmp_path)
    monkeypatch.setattr(os, "killpg", lambda pid, number: made.killed.append(number))
    yield made
    made.close()


# --- waiting -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "what",
    [
        *("_keyboard.held_until", "_link.retry_at", "_child.due_at", "_unread.look_at"),
        *("_tell_at", "_nudge_at", "_muted_until", "_over_at"),
    ],
)
def test_the_loop_wakes_for_all_that_is_due(bench: Bench, what: str) -> None:
    *owners, name = what.split(".")
    owner: Any = getattr(bench.relay, owners[0]) if owners else bench.relay
    assert bench.relay._due_at() == NEVER
    setattr(owner, name, 1234.5)

    assert bench.relay._due_at() == 1234.5


def test_the_loop_waits_for_a_blocked_brain_to_read(bench: Bench) -> None:
    assert bench.relay._link.fd not in bench.relay._waited_for()[1]
    bench.relay._link.is_blocked = True
    assert bench.relay._link.fd in bench.relay._waited_for()[1]


def test_the_loop_does_not_type_to_a_terminal_that_is_gone(bench: Bench) -> None:
    bench.relay._keyboard.press(b"key")
    assert bench.master in bench.relay._waited_for()[1]
    bench.relay._is_master_open = False
    assert bench.master not in bench.relay._waited_for()[1]


def test_a_child_that_ended_before_signals_are_heard_is_noticed(bench: Bench) -> None:
    os.close(bench.child)
    relay = bench.relay
    with (
        mock.patch.object(relay._signals, "hear") as heard,
        mock.patch.object(relay._link, "start", return_value=True) as started,
        mock.patch.object(os, "waitpid", side_effect=[(CHILD, 3 << 8), (0, 0), *[(0, 0)] * 99]),
    ):
        assert relay.run() == 3

    assert set(heard.call_args.args[0]) >= {signal.SIGCHLD, signal.SIGWINCH, signal.SIGHUP, signal.SIGTSTP}
    assert started.call_count == 1


# --- output and keys -----------------------------------------------------------------------------


def test_output_is_shown_at_once_and_told_a_little_later(bench: Bench) -> None:
    bench.write(b"hello")
    bench.turn()
    assert bench.shown() == b"hello"
    assert bench.told() == []
    bench.turn(0.0021)

    assert bench.told() == [(b"O", b"hello")]


def test_much_output_is_told_without_delay(bench: Bench) -> None:
    for _ in range(12):
        bench.write(b"x" * 4000)
        bench.turn()
        bench.shown()

    assert len(b"".join(bench.told_of(b"O"))) >= 32 * 1024


def test_a_child_without_a_terminal_is_looked_at_now_and_then(bench: Bench) -> None:
    os.close(bench.child)
    bench.turn()
    reads, _ = bench.relay._waited_for()
    assert bench.master not in reads
    bench.turn(0.06, turns=1)
    reads, _ = bench.relay._waited_for()
    assert bench.master in reads


def test_what_a_child_wrote_last_is_read_at_once_when_it_ends(bench: Bench) -> None:
    os.close(bench.child)
    bench.turn()
    assert bench.master not in bench.relay._waited_for()[0]
    bench.relay._note_end(0)
    assert bench.master in bench.relay._waited_for()[0]


def test_a_brain_that_takes_nothing_is_not_written_to_for_every_output(bench: Bench) -> None:
    bench.relay._link.is_blocked = True
    bench.relay._link.backlog.add_output(bytes(40_000))
    with mock.patch.object(bench.relay._link, "flush") as flushed:
        bench.relay._send_soon()
        assert not flushed.called
        bench.relay._link.is_blocked = False
        bench.relay._send_soon()
        assert flushed.called


def test_the_child_is_not_read_while_the_terminal_takes_nothing(bench: Bench) -> None:
    bench.relay._terminal.unshown = b"rest"
    reads, writes = bench.relay._waited_for()

    assert bench.master not in reads
    assert bench.relay._terminal.screen in writes


def test_a_terminal_that_is_full_is_not_given_more(bench: Bench) -> None:
    bench.write(b"x" * 4000)
    with mock.patch.object(bench.relay._terminal, "show") as shown:
        bench.relay._terminal.unshown = b"rest"
        bench.relay._read_output()

    assert shown.call_count == 1


def test_nothing_is_shown_on_a_terminal_that_is_gone(bench: Bench) -> None:
    bench.relay._hang_up()
    bench.write(b"x")
    bench.turn()

    assert bench.shown() == b""


def test_keys_for_a_terminal_that_cannot_be_written_are_forgotten(bench: Bench) -> None:
    with mock.patch.object(bench.relay._keyboard, "write", side_effect=OSError):
        os.write(bench.keys, b"key")
        bench.turn()

    assert bench.relay._keyboard.is_empty


def test_a_new_brain_is_told_whether_keys_are_held(bench: Bench) -> None:
    for seconds in (1.0, 0.0):
        bench.say(relay_frames.HOLD, struct.pack("!d", seconds))
        bench.turn(0.01)
        bench.relay._greet()
        (greeting,) = bench.told_of(b"S")
        assert json.loads(greeting)["held_keys"] is (seconds > 0)
        bench.say(relay_frames.RELEASE)


def test_keys_go_to_the_child_and_are_told(bench: Bench) -> None:
    os.write(bench.keys, b"key")
    bench.turn(0.003)
    bench.turn(0.003)

    assert bench.typed(3) == b"key"
    assert bench.told() == [(b"K", b"key")]


def test_a_word_of_ours_is_told_only_where_a_brain_listens(bench: Bench) -> None:
    bench.say(relay_frames.OURS, b"/share\n/pause")
    os.write(bench.keys, b"/share\r")
    bench.turn()
    bench.turn(0.003)
    assert bench.typed(12) == b"/share" + b"\x7f" * 6
    assert bench.told() == [(b"K", b"/share\r"), (b"C", b"/share")]

    bench.brain.close()
    bench.turn()
    os.write(bench.keys, b"/share\r")
    bench.turn()
    assert bench.typed(7) == b"/share\r"


def test_the_end_of_a_pipe_is_the_end_of_lines(bench: Bench) -> None:
    attributes = termios.tcgetattr(bench.child)
    attributes[3] |= termios.ICANON
    termios.tcsetattr(bench.child, termios.TCSANOW, attributes)
    os.write(bench.keys, b"word")
    bench.turn()
    os.close(bench.keys)
    bench.turn()

    assert [bench.read_child(), bench.read_child()] == [b"word", b""]
    assert bench.relay._terminal.keys not in bench.relay._waited_for()[0]


def test_the_end_of_a_pipe_is_no_key_for_a_child_that_reads_keys(bench: Bench) -> None:
    os.close(bench.keys)
    bench.turn()
    bench.say(relay_frames.INPUT, bytes(4) + b"next")

    assert bench.typed(4) == b"next"


# --- the brain -----------------------------------------------------------------------------------


def test_an_input_is_done_when_it_was_read(bench: Bench) -> None:
    bench.say(relay_frames.INPUT, (7).to_bytes(4, "big") + b"\r")
    assert select.select([bench.child], [], [], WITHIN_S)[0]
    bench.turn(0.03)
    assert bench.told_of(b"D") == []
    assert bench.typed(1) == b"\r"
    bench.turn(0.3)

    assert bench.told_of(b"D") == [(7).to_bytes(4, "big")]


def test_an_input_that_a_key_has_crossed_is_refused(bench: Bench) -> None:
    os.write(bench.keys, b"ab")
    bench.turn()
    for tag, seen in ((1, 1), (2, 2), (3, 3)):
        bench.say(relay_frames.INPUT_UNLESS, struct.pack("!IQ", tag, seen) + b"%d" % tag)
    typed = bench.typed(3)
    bench.turn(0.3)
    told = bench.told()

    assert typed == b"ab2"
    assert [one for one in told if one[0] in b"FD"] == [
        (b"F", struct.pack("!I", 1)),
        (b"F", struct.pack("!I", 3)),
        (b"D", struct.pack("!I", 2)),
    ]


def test_keys_are_counted_anew_for_a_new_brain(bench: Bench) -> None:
    os.write(bench.keys, b"ab")
    bench.turn()
    bench.relay._greet()

    assert bench.relay._keys_told == 0


def test_held_keys_go_when_they_are_released_or_their_time_is_over(bench: Bench) -> None:
    bench.say(relay_frames.HOLD, struct.pack("!d", 1.0))
    os.write(bench.keys, b"a")
    bench.turn(0.5)
    assert not bench.is_typed()
    bench.say(relay_frames.RELEASE)
    assert bench.typed(1) == b"a"

    bench.say(relay_frames.HOLD, struct.pack("!d", 1.0))
    os.write(bench.keys, b"b")
    bench.turn(0.9)
    assert not bench.is_typed()
    bench.turn(0.2)
    assert bench.typed(1) == b"b"


def test_a_brain_can_have_the_child_signalled_and_redrawn(bench: Bench) -> None:
    for number in (signal.SIGUSR1, -1):
        bench.say(relay_frames.SIGNAL, struct.pack("!i", number))
    bench.say(relay_frames.NUDGE)
    assert bench.killed == [signal.SIGUSR1, -1]
    assert termios.tcgetwinsize(bench.child) == (23, 80)
    bench.turn(0.2)
    assert termios.tcgetwinsize(bench.child) == (24, 80)


def test_a_new_brain_has_the_child_redraw_when_it_speaks_or_a_second_later(bench: Bench) -> None:
    relay = bench.relay
    assert relay._nudge_at == NEVER, "the first brain has seen all of it"
    relay._link.starts = 2
    relay._greet()
    bench.turn(0.9)
    assert termios.tcgetwinsize(bench.child) == (24, 80)
    bench.turn(0.2)
    assert termios.tcgetwinsize(bench.child) == (23, 80)
    bench.turn(1.0)
    relay._greet()
    bench.say(relay_frames.OURS)
    assert termios.tcgetwinsize(bench.child) == (23, 80)


def test_a_brain_that_goes_is_followed_by_another_and_nothing_is_redrawn_for_the_dead(bench: Bench) -> None:
    bench.relay._link.starts = 2
    bench.relay._greet()
    bench.brain.close()
    bench.turn()

    assert bench.relay._nudge_at == NEVER
    assert bench.relay._link.retry_at == bench.now + 0.1


def test_what_a_dead_brain_has_said_last_is_still_done(bench: Bench) -> None:
    """What it started may have its socket open for ever."""
    bench.relay._link.pid = 4321
    bench.brain.send(encode(relay_frames.INPUT, bytes(4) + b"last"))
    with (
        mock.patch.object(os, "waitpid", side_effect=[(4321, 0), (0, 0)]),
        mock.patch.object(os, "kill") as killed,
    ):
        bench.relay._reap()
    assert not killed.called, "its number may be another process's now"

    assert bench.typed(4) == b"last"
    assert (bench.relay._link.fd, bench.relay._link.pid) == (-1, 0)


def test_nonsense_of_a_brain_does_no_harm(bench: Bench) -> None:
    for kind, payload in (
        (relay_frames.HOLD, b"x"),
        (relay_frames.AGAIN, b"{"),
        (relay_frames.AGAIN, b"[]"),
        (relay_frames.AGAIN, b'{"argv": ["/bin/cat"], "env": 5}'),
        (b"?", b"x"),
    ):
        bench.say(kind, payload)
    bench.say(relay_frames.INPUT, bytes(4) + b"fine")

    assert bench.typed(4) == b"fine"


def test_a_brain_is_not_read_while_much_waits_to_be_typed(bench: Bench) -> None:
    bench.relay._keyboard._input_bytes = 1 << 30
    reads, _ = bench.relay._waited_for()

    assert bench.relay._link.fd not in reads


def test_a_person_is_not_read_while_many_keys_wait(bench: Bench) -> None:
    bench.relay._keyboard._keys_bytes = 1 << 30
    reads, _ = bench.relay._waited_for()

    assert bench.relay._terminal.keys not in reads


# --- signals -------------------------------------------------------------------------------------


def test_only_a_new_size_is_told(bench: Bench) -> None:
    for size in (SIZE, struct.pack("HHHH", 30, 90, 0, 0), struct.pack("HHHH", 30, 90, 0, 0), None):
        with mock.patch.object(bench.relay._terminal, "size", return_value=size):
            bench.relay._resize()

    assert bench.told_of(b"W") == [struct.pack("!HH", 30, 90)]
    assert termios.tcgetwinsize(bench.child) == (30, 90)


@pytest.mark.parametrize(("was_stopped", "phase"), [(True, b"continued"), (False, b"kept")])
def test_a_child_that_stopped_is_continued_with_us_or_by_us(
    bench: Bench, was_stopped: bool, phase: bytes
) -> None:
    bench.write(b"last words")
    calls = mock.Mock()
    calls.stop.return_value = was_stopped
    with (
        mock.patch.object(bench.relay._signals, "stop", calls.stop),
        mock.patch.object(bench.relay._terminal, "restore", calls.restore),
        mock.patch.object(bench.relay._terminal, "make_raw", calls.make_raw),
        mock.patch.object(os, "waitpid", side_effect=[(CHILD, 0x137F), (0, 0)]) as waited,
    ):
        bench.relay._reap()
    assert waited.call_args.args == (-1, os.WNOHANG | os.WUNTRACED)

    assert [call[0] for call in calls.mock_calls] == ["restore", "stop", "make_raw"]
    assert bench.shown() == b"last words"
    assert bench.told_of(b"P") == [b"stopped", phase]
    assert bench.killed == [signal.SIGCONT]


def test_a_stop_of_the_relay_stops_the_child_too(bench: Bench) -> None:
    with mock.patch.object(bench.relay._signals, "stop", return_value=True):
        bench.relay._on_signal[signal.SIGTSTP]()

    assert bench.killed == [signal.SIGTSTP, signal.SIGCONT]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_a_signal_is_passed_on(bench: Bench, number: signal.Signals) -> None:
    bench.relay._on_signal[number]()

    assert bench.killed == [number]


def test_a_terminal_that_is_gone_ends_the_child_and_us_soon(bench: Bench) -> None:
    relay = bench.relay
    relay._terminal.unshown = b"never"
    relay._on_signal[signal.SIGHUP]()
    relay._on_signal[signal.SIGHUP]()

    assert bench.killed == [signal.SIGHUP, signal.SIGCONT]
    assert relay._terminal.unshown == b""
    assert relay._terminal.keys not in relay._waited_for()[0]
    bench.now += 2.9
    assert not relay._is_over()
    bench.now += 0.2
    assert relay._is_over()
    assert not relay._start_again()


def test_a_screen_that_cannot_be_written_is_a_terminal_that_is_gone(bench: Bench) -> None:
    with mock.patch.object(bench.relay._terminal, "show", side_effect=OSError):
        bench.write(b"x")
        bench.turn()

    assert signal.SIGHUP in bench.killed


# --- the end -------------------------------------------------------------------------------------


def test_a_child_that_is_over_is_read_to_its_end_but_not_for_ever(bench: Bench) -> None:
    bench.relay._note_end(0)
    assert not bench.relay._is_over()
    bench.now += 0.6
    assert bench.relay._is_over()


def test_the_end_comes_at_once_when_all_is_read(bench: Bench) -> None:
    bench.relay._note_end(0)
    os.close(bench.child)
    bench.turn()

    assert bench.relay._is_over()


def test_a_slow_terminal_is_given_more_time_but_not_all(bench: Bench) -> None:
    bench.relay._note_end(0)
    bench.relay._is_master_open = False
    bench.relay._terminal.unshown = b"rest"
    over = []
    for _ in range(6):
        bench.now += 0.4
        over.append(bench.relay._is_over())
    bench.now += 4.9
    over.append(bench.relay._is_over())

    assert over == [False] * 6 + [True]


@pytest.mark.parametrize(
    ("status", "code", "told", "shown"),
    [
        (0, 0, b'{"code": 0}', b""),
        (7 << 8, 7, b'{"code": 7}', b""),
        (9, 137, b'{"signal": 9}', RESET),
        (None, 129, None, b""),
    ],
)
def test_the_last_words(
    bench: Bench, status: int | None, code: int, told: bytes | None, shown: bytes
) -> None:
    bench.relay._child.status = status

    assert bench.relay._end() == code
    assert bench.told_of(b"X") == ([] if told is None else [told])
    assert bench.shown() == shown


# --- another child -------------------------------------------------------------------------------


def test_another_child_has_a_clean_screen_and_nothing_of_the_last(bench: Bench) -> None:
    relay = bench.relay
    bench.say(relay_frames.INPUT, (7).to_bytes(4, "big") + b"unread")
    bench.restart()
    assert bench.killed[:1] == [signal.SIGCONT]
    relay._keyboard.press(b"for the last one")
    before: Attributes = [1]
    relay._terminal.before = before
    master, slave = os.openpty()
    tty.setraw(slave)
    bench._fds |= {slave}
    with mock.patch.object(relay_loop, "start_child", return_value=(CHILD + 1, master)) as started:
        assert relay._is_over()
        with mock.patch.object(relay._terminal, "size", return_value=struct.pack("HHHH", 30, 90, 0, 0)):
            assert relay._start_again()
    assert relay._keyboard.is_empty
    assert relay._is_master_open
    assert termios.tcgetwinsize(slave) == (30, 90), "it may have changed meanwhile"
    assert started.call_args.kwargs == {"like": before, "life": -1}
    relay._terminal.before = None
    bench.turn(1.0)

    assert started.call_args.args[:3] == (["/bin/cat"], {"A": "1"}, relay._plan.cwd)
    assert started.call_args.args[3:] == (24, 80)
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(bench.master)
    assert bench.shown() == RESET + CLEAR
    told = bench.told()
    assert (b"P", b"restarted") in told
    assert not [one for one in told if one[0] == b"D"], "nobody has read it"
    assert relay._child.pid == CHILD + 1
    assert not relay._is_over()
    assert not relay._next


def test_the_environment_of_another_child_is_the_one_asked_for(bench: Bench) -> None:
    bench.say(relay_frames.AGAIN, json.dumps({"argv": ["/bin/cat", "-"], "env": {"B": "2"}}).encode())

    assert bench.relay._next == (["/bin/cat", "-"], {"B": "2"})


def test_a_child_that_cannot_follow_is_an_end_that_is_shown(bench: Bench) -> None:
    bench.restart()
    with mock.patch.object(relay_loop, "start_child", side_effect=OSError(2, "No such file or directory")):
        assert not bench.relay._start_again()

    assert bench.shown() == RESET + CLEAR + b"csp: cannot start '/bin/cat': No such file or directory\r\n"
    assert bench.relay._end() == 127


def test_each_child_that_can_be_stopped_has_a_pipe_of_its_own(bench: Bench) -> None:
    old, bench.relay._plan.life = os.pipe()
    with (
        mock.patch.object(relay_loop, "start_child", side_effect=OSError(2, "gone")) as started,
        pytest.raises(OSError, match="gone"),
    ):
        bench.relay._started(["/bin/cat"], {})

    assert os.read(old, 1) == b"", "the guards of the last one end"
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(started.call_args.kwargs["life"])
    os.close(old)
    os.close(bench.relay._plan.life)


def test_a_child_is_not_ended_for_a_program_that_is_not_there(bench: Bench) -> None:
    bench.say(relay_frames.AGAIN, b'{"argv": ["/none/such"]}')

    assert bench.relay._next is None
    assert bench.killed == []
    assert bench.told_of(b"P") == [b"not restarted: cannot execute '/none/such'"]


def test_no_child_follows_on_a_terminal_that_is_gone(bench: Bench) -> None:
    bench.restart()
    bench.relay._hang_up()

    assert not bench.relay._start_again()


def test_a_terminal_that_is_gone_when_we_are_continued_ends_the_child(bench: Bench) -> None:
    with (
        mock.patch.object(bench.relay._terminal, "make_raw", side_effect=OSError),
        mock.patch.object(bench.relay._terminal, "size", return_value=struct.pack("HHHH", 30, 90, 0, 0)),
    ):
        bench.relay._on_signal[signal.SIGCONT]()

    assert bench.killed == [signal.SIGHUP, signal.SIGCONT, signal.SIGCONT]
    assert termios.tcgetwinsize(bench.child) == (30, 90)


def test_the_terminal_is_put_back_whatever_happens(bench: Bench) -> None:
    with (
        mock.patch.object(relay_loop, "UserTerminal") as terminal,
        mock.patch.object(relay_loop, "Relay", side_effect=RuntimeError),
        pytest.raises(RuntimeError),
    ):
        relay_loop.relay(bench.relay._plan)

    assert terminal.return_value.close.called


def test_a_slow_brain_hears_the_last_words(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    link, heard = bench.relay._link, bytearray()
    while not link.is_blocked:
        link.backlog.add_output(bytes(100_000))
        link.flush()

    def read_on(reads: Any, writes: list[int], others: Any, timeout: float) -> Any:
        assert writes == [link.fd]
        heard.extend(bench.brain.recv(1 << 20))
        return [], writes, []

    monkeypatch.setattr(relay_loop, "select", SimpleNamespace(select=read_on))
    bench.relay._child.status = 0
    bench.relay._end()
    heard.extend(bench.brain.recv(1 << 20))

    assert Decoder().feed(bytes(heard))[-1] == (relay_frames.ENDED, b'{"code": 0}')
