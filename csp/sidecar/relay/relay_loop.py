"""The relay's loop, which passes child output to the terminal, keys to the child, and both to the brain."""

import os
import select
import struct
import termios
import time

from csp.sidecar.relay import relay_frames
from csp.sidecar.relay.child_process import ChildProcess
from csp.sidecar.relay.input_queue import NEVER, InputQueue, LineInterceptor, UnreadInput
from csp.sidecar.relay.job_control import Signals, signal
from csp.sidecar.relay.pty_processes import SpawnPlan, start_child
from csp.sidecar.relay.relay_socket import BrainLink
from csp.sidecar.relay.user_terminal import CLEAR, RESET, UserTerminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_READ_BYTES = 16 * 1024
#: A terminal returns at most 4 KiB per read; one that returns at least this much probably has more.
_MORE_BYTES = 2 * 1024
_READS_IN_A_ROW = 16
#: The delay of non-urgent frames to the brain, which avoids waking it for every key.
_TELL_S = 0.002
_TELL_BYTES = 32 * 1024
#: A new brain that has sent nothing for this time counts as ready.
_BRAIN_READY_S = 1.0
#: How long to wait for a dead child's last output if others have its terminal open, or if ours is slow.
_DRAIN_S = 0.5
_SLOW_DRAIN_S = 5.0
_HANG_UP_S = 3.0
_MUTE_S = 0.05
_KILLED = 128
_NOT_STARTED = 127


class Relay:
    """The connection of a terminal and a child until the child ends."""

    def __init__(self, plan: SpawnPlan, terminal: UserTerminal) -> None:
        self._plan = plan
        self._terminal = terminal
        self._child = ChildProcess(plan.child, plan.master)
        self._keyboard = InputQueue()
        self._words = LineInterceptor()
        self._link = BrainLink(plan.brain_argv, plan.log)
        self._signals = Signals()
        self._next: tuple[list[str], dict[str, str]] | None = None
        #: The number of key bytes that were sent to the brain.
        self._keys_told = 0
        self._is_master_open = True
        self._are_keys_open = True
        self._is_gone = False
        self._muted_until = NEVER
        self._died_at = NEVER
        self._over_at = NEVER
        self._tell_at = NEVER
        self._nudge_at = NEVER
        self._unread = UnreadInput()
        self._on_signal: dict[int, Callable[[], None]] = {
            signal.SIGCHLD: self._reap,
            signal.SIGWINCH: self._resize,
            signal.SIGCONT: self._resume,
            signal.SIGTSTP: self._suspend_all,
            signal.SIGHUP: self._hang_up,
            signal.SIGTERM: lambda: self._child.signal(signal.SIGTERM),
            signal.SIGINT: lambda: self._child.signal(signal.SIGINT),
            signal.SIGQUIT: lambda: self._child.signal(signal.SIGQUIT),
        }

    # --- the loop --------------------------------------------------------------------------------

    def run(self) -> int:
        """Relay until the child has ended; return the corresponding exit code."""
        self._signals.hear(self._on_signal)
        self._terminal.make_raw()
        if self._link.start(time.monotonic()):
            self._greet()
        self._resize()
        self._reap()
        while not self._is_over() or self._start_again():
            self._turn()
        return self._end()

    def _turn(self) -> None:
        terminal, link, master = self._terminal, self._link, self._child.master
        reads, writes = self._waited_for()
        due_at = self._due_at()
        timeout = None if due_at == NEVER else max(0.0, due_at - time.monotonic())
        readable, writable, _ = select.select(reads, writes, (), timeout)
        # The person's keys have priority.
        if terminal.keys in readable:
            self._read_keys()
        if master in writable:
            self._type()
        if terminal.screen in writable:
            self._show()
        if master in readable:
            self._read_output()
        if self._signals.fd in readable:
            for number in self._signals.drain():
                self._on_signal[number]()
        if link.fd in readable:
            self._read_frames()
        if link.fd in writable:
            link.flush()
        self._do_what_is_due()

    def _waited_for(self) -> tuple[list[int], list[int]]:
        terminal, link, keyboard = self._terminal, self._link, self._keyboard
        reads, writes = [self._signals.fd], []
        if self._are_keys_open and keyboard.takes_keys:
            reads.append(terminal.keys)
        if terminal.unshown:
            # Meanwhile the child's output is not read, so that no buffer grows.
            writes.append(terminal.screen)
        elif self._is_master_open and self._muted_until == NEVER:
            reads.append(self._child.master)
        if not keyboard.is_empty and self._is_master_open:
            writes.append(self._child.master)
        if link.fd >= 0:
            if keyboard.takes_input:
                reads.append(link.fd)
            if link.is_blocked:
                writes.append(link.fd)
        return reads, writes

    def _due_at(self) -> float:
        return min(
            self._keyboard.held_until,
            self._link.retry_at,
            self._child.due_at,
            self._tell_at,
            self._nudge_at,
            self._unread.look_at,
            self._muted_until,
            self._over_at,
        )

    def _do_what_is_due(self) -> None:
        now = time.monotonic()
        if self._tell_at <= now:
            self._send()
        if self._keyboard.held_until <= now:
            self._keyboard.release()
            self._type()
        if self._unread.look_at <= now:
            # If the child read two Enters at once, both would act, so the brain waits for this.
            for brain, tag in self._unread.look(self._child.has_read(), now):
                if brain == self._link.starts:
                    self._send(relay_frames.DONE, tag.to_bytes(4, "big"))
        if self._child.due_at <= now:
            self._child.do_what_is_due(now)
        if self._muted_until <= now:
            self._muted_until = NEVER
        if self._nudge_at <= now:
            self._nudge_at = NEVER
            self._child.nudge(now)
        if self._link.retry_at <= now and self._link.start(now):
            self._greet()

    # --- the child's bytes -----------------------------------------------------------------------

    def _read_output(self) -> bool:
        """Read the child's output, show it and queue it for the brain; return whether there was any."""
        for turn in range(_READS_IN_A_ROW):
            try:
                data = os.read(self._child.master, _READ_BYTES)
            except BlockingIOError:
                return turn > 0
            except OSError:
                data = b""
            if not data:
                # No process has the child's terminal open; a live child may open it again.
                if self._child.status is None:
                    self._muted_until = time.monotonic() + _MUTE_S
                else:
                    self._is_master_open = False
                return False
            self._show(data)
            self._link.backlog.add_output(data)
            self._send_soon()
            if self._terminal.unshown or len(data) < _MORE_BYTES:
                break
        return True

    def _show(self, data: bytes = b"") -> None:
        if self._is_gone:
            return
        try:
            self._terminal.show(data)
        except OSError:
            self._hang_up()

    # --- the person's keys -----------------------------------------------------------------------

    def _read_keys(self) -> None:
        try:
            keys = os.read(self._terminal.keys, _READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            keys = b""
        if keys:
            # Without a brain, nothing could execute the command.
            passed, word = self._words.feed(keys, is_heard=self._link.fd >= 0)
            self._keyboard.press(passed)
            self._type()
            self._keys_told += len(keys)
            self._link.backlog.add(relay_frames.KEYS, keys)
            if word:
                self._link.backlog.add(relay_frames.WORD, word)
            self._send_soon()
        elif not self._terminal.is_tty:
            self._are_keys_open = False
            # Send an end of file to a child that reads lines, as a terminal would.
            _, _, _, lflag, _, _, codes = termios.tcgetattr(self._child.master)
            if lflag & termios.ICANON:
                # The first one may merely end a line that has no newline.
                self._keyboard.press(codes[termios.VEOF] * 2)
                self._type()
        elif self._terminal.size() is None:
            self._hang_up()

    def _type(self) -> None:
        try:
            done = self._keyboard.write(self._child.master)
        except OSError:
            self._keyboard.clear()
        else:
            self._unread.add(done, time.monotonic())

    # --- the brain -------------------------------------------------------------------------------

    def _greet(self) -> None:
        self._keys_told = 0
        self._link.greet(self._child, is_holding=self._keyboard.is_holding)
        if self._link.starts > 1:
            self._nudge_at = time.monotonic() + _BRAIN_READY_S

    def _send_soon(self) -> None:
        if self._link.backlog.unsent_bytes() >= _TELL_BYTES:
            if not self._link.is_blocked:
                self._send()
        elif self._tell_at == NEVER:
            self._tell_at = time.monotonic() + _TELL_S

    def _send(self, kind: bytes = b"", payload: bytes = b"") -> None:
        self._tell_at = NEVER
        if kind:
            self._link.backlog.add(kind, payload)
        self._link.flush()

    def _read_frames(self) -> None:
        received = self._link.receive()
        if received is None:
            self._lose_brain()
            return
        if self._nudge_at != NEVER:
            self._nudge_at = 0.0
        for kind, payload in received:
            try:
                self._obey(kind, payload)
            except (ValueError, KeyError, TypeError, AttributeError, IndexError, struct.error):
                continue  # an invalid frame from a brain must not end the child

    def _lose_brain(self) -> None:
        self._link.lose(time.monotonic())
        self._nudge_at = NEVER

    def _insert(self, tag: bytes, data: bytes, keys_known: int | None = None) -> None:
        """Insert the brain's input, unless a key typed in the meantime would precede it."""
        if keys_known not in (None, self._keys_told):
            self._send(relay_frames.REFUSED, tag)
            return
        self._keyboard.insert(data, (self._link.starts, int.from_bytes(tag, "big")))
        self._type()

    def _obey(self, kind: bytes, payload: bytes) -> None:
        if kind == relay_frames.INPUT:
            self._insert(payload[:4], payload[4:])
        elif kind == relay_frames.INPUT_UNLESS:
            self._insert(payload[:4], payload[12:], int.from_bytes(payload[4:12], "big"))
        elif kind == relay_frames.HOLD:
            (seconds,) = struct.unpack("!d", payload)
            self._keyboard.hold(seconds, time.monotonic())
        elif kind == relay_frames.RELEASE:
            self._keyboard.release()
            self._type()
        elif kind == relay_frames.OURS:
            self._words.ours = tuple(payload.split())
        elif kind == relay_frames.NOTE:
            self._link.keep(payload)
        elif kind == relay_frames.NUDGE:
            self._child.nudge(time.monotonic())
        elif kind == relay_frames.SIGNAL:
            self._child.signal(int.from_bytes(payload, "big", signed=True))
        elif kind == relay_frames.AGAIN:
            self._make_way(payload)

    # --- signals ---------------------------------------------------------------------------------

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._child.pid:
                self._suspend() if os.WIFSTOPPED(status) else self._note_end(status)
            elif pid == self._link.pid and not os.WIFSTOPPED(status):
                self._note_end_of_brain()

    def _note_end(self, status: int) -> None:
        self._child.status = status
        self._muted_until = NEVER
        self._died_at = time.monotonic()
        self._over_at = self._died_at + _DRAIN_S

    def _note_end_of_brain(self) -> None:
        """Read the brain's last frames; a process that it started may keep its socket open forever."""
        self._link.pid = 0
        for _ in range(_READS_IN_A_ROW):
            if self._link.fd >= 0:
                self._read_frames()
        if self._link.fd >= 0:
            self._lose_brain()

    def _resize(self) -> None:
        size = self._terminal.size()
        if size is not None and self._child.resize(size):
            self._send(relay_frames.SIZE, struct.pack("!HH", *self._child.rows_cols))

    def _suspend_all(self) -> None:
        self._child.signal(signal.SIGTSTP)
        self._suspend()

    def _suspend(self) -> None:
        """Stop as the child did, or continue the child if nobody could continue us."""
        # First show the child's output so far, if the terminal accepts it in time.
        until = time.monotonic() + _DRAIN_S
        while time.monotonic() < until:
            if self._terminal.unshown:
                select.select((), (self._terminal.screen,), (), _MUTE_S)
                self._show()
            elif not select.select((self._child.master,), (), (), _MUTE_S)[0] or not self._read_output():
                break
        self._send(relay_frames.PHASE, relay_frames.STOPPED)
        self._terminal.restore()
        was_stopped = self._signals.stop()
        self._resume()
        self._send(relay_frames.PHASE, relay_frames.CONTINUED if was_stopped else relay_frames.KEPT)

    def _resume(self) -> None:
        try:
            self._terminal.make_raw()
        except OSError:
            self._hang_up()
        self._resize()
        self._child.signal(signal.SIGCONT)

    def _hang_up(self) -> None:
        """Hang up the child's terminal, because ours is gone."""
        if not self._is_gone:
            self._is_gone = True
            self._are_keys_open = False
            self._terminal.unshown = b""
            self._child.signal(signal.SIGHUP)
            self._child.signal(signal.SIGCONT)
            self._over_at = min(self._over_at, time.monotonic() + _HANG_UP_S)

    # --- the end ---------------------------------------------------------------------------------

    def _make_way(self, payload: bytes) -> None:
        """End the child to replace it, unless its successor clearly cannot be started."""
        import json  # a tenth of the relay's memory, needed only here

        wanted = json.loads(payload)
        argv = [str(argument) for argument in wanted["argv"]]
        env = {str(name): str(value) for name, value in (wanted.get("env") or self._plan.env).items()}
        if os.access(argv[0], os.X_OK):
            self._next = argv, env
            self._child.end(time.monotonic())
        else:
            reason = f"cannot execute {argv[0]!r}".encode()
            self._send(relay_frames.PHASE, relay_frames.NOT_RESTARTED + reason)

    def _is_over(self) -> bool:
        if self._over_at == NEVER:
            return False
        now = time.monotonic()
        if self._terminal.unshown:
            # Our terminal is slow, not the child.
            self._over_at = max(self._over_at, min(now + _DRAIN_S, self._died_at + _SLOW_DRAIN_S))
        is_drained = self._child.status is not None and not self._is_master_open
        return (is_drained and not self._terminal.unshown) or self._over_at <= now

    def _start_again(self) -> bool:
        """Start the successor of a child that has ended, if there is one."""
        if self._next is None or self._is_gone:
            return False
        (argv, env), self._next = self._next, None
        os.close(self._child.master)
        self._keyboard.clear()
        self._unread.clear()
        # The screen of the previous child must not remain visible.
        self._show(RESET + CLEAR)
        try:
            self._child = self._started(argv, env)
        except OSError as exc:
            self._show(f"csp: cannot start {argv[0]!r}: {exc.strerror}\r\n".encode())
            self._child.status = _NOT_STARTED << 8
            return False
        self._is_master_open = True
        self._over_at = self._died_at = NEVER
        self._resize()
        self._send(relay_frames.PHASE, relay_frames.RESTARTED)
        return True

    def _started(self, argv: list[str], env: dict[str, str]) -> ChildProcess:
        rows, cols = self._child.rows_cols
        life = -1
        if self._plan.life >= 0:
            os.close(self._plan.life)
            life, self._plan.life = os.pipe()
        try:
            pid, master = start_child(
                argv, env, self._plan.cwd, rows, cols, like=self._terminal.before or -1, life=life
            )
        finally:
            if life >= 0:
                os.close(life)
        return ChildProcess(pid, master)

    def _end(self) -> int:
        """Send the last output to the terminal and the last frames to the brain; return the exit code."""
        status = self._child.status
        code = _KILLED + signal.SIGHUP if status is None else os.waitstatus_to_exitcode(status)
        if code < 0:
            self._show(RESET)
        if status is not None:
            end = f'{{"signal": {-code}}}' if code < 0 else f'{{"code": {code}}}'
            self._send(relay_frames.ENDED, end.encode())
        until = time.monotonic() + _DRAIN_S
        while (self._terminal.unshown or self._link.is_blocked) and time.monotonic() < until:
            writes = [self._terminal.screen] * bool(self._terminal.unshown)
            writes += [self._link.fd] * self._link.is_blocked
            select.select((), writes, (), _MUTE_S)
            self._show()
            self._link.flush()
        # Do not die by the same signal: a core file of the relay is useless, and a shell shows 128+N anyway.
        return _KILLED - code if code < 0 else code


def relay(plan: SpawnPlan) -> int:
    """Run a relay with this plan; return the exit code."""
    terminal = UserTerminal(0, 1, plan.state)
    try:
        return Relay(plan, terminal).run()
    finally:
        terminal.close()
