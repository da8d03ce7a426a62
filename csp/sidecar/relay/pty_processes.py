"""Start processes around a pseudo-terminal: the child, the brain, the relay.

Each is a bare fork with exec: the relay has no room for subprocess.
"""

import fcntl
import marshal
import os
import sys
import termios

from csp.sidecar.relay.job_control import signal, stand_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from csp.sidecar.relay.user_terminal import Attributes

#: Where a relay finds its plan, or a brain the relay.
HANDED_FD = 3
_MAX_FD = 1 << 16
_MAX_FAILURE_BYTES = 8192
_CAN_NOT_EXEC = 127


class SpawnPlan:
    """What a relay is told at its start. All of it can be written by marshal."""

    def __init__(
        self,
        *,
        child: int,
        master: int,
        argv: list[str],
        env: dict[str, str],
        cwd: str,
        brain_argv: list[str],
        state: str,
        log: str = os.devnull,
        life: int = -1,
    ) -> None:
        #: The process in the pseudo-terminal, whose other end is `master`.
        self.child, self.master = child, master
        #: Our end of the pipe that ends with us, if the child can be stopped.
        self.life = life
        #: How it was started, to start it again.
        self.argv, self.env, self.cwd = argv, env, cwd
        #: How to start a brain.
        self.brain_argv = brain_argv
        #: A folder for records of terminals, a file for what a brain prints.
        self.state, self.log = state, log


def start_child(
    argv: list[str],
    env: dict[str, str],
    cwd: str,
    rows: int,
    cols: int,
    *,
    like: "int | Attributes" = -1,
    life: int = -1,
) -> tuple[int, int]:
    """Start a program in a new pseudo-terminal; return its pid with the end that we keep.

    `argv[0]` is a path. OSError if it cannot be executed: then there is no child. `like` is the person's
    terminal, or what tcgetattr says of it: its erase character, UTF-8 and so on are taken over. With a pipe's
    end as `life` the child can be stopped by Ctrl-Z, until the pipe's other end is closed.
    """
    master, slave = os.openpty()

    def enter() -> None:
        os.login_tty(slave)
        os.chdir(cwd)
        if life >= 0:
            stand_by(life)

    try:
        if isinstance(like, int):
            like = termios.tcgetattr(like) if like >= 0 and os.isatty(like) else []
        if like:
            termios.tcsetattr(slave, termios.TCSANOW, like)
        termios.tcsetwinsize(slave, (rows, cols))
        pid = _start(argv, env, enter, HANDED_FD)
    except OSError:
        os.close(master)
        raise
    finally:
        os.close(slave)
    os.set_blocking(master, False)
    return pid, master


def start_brain(argv: list[str], log: str) -> tuple[int, int]:
    """Start a brain with what it needs of our environment; return its pid with our end of its socket.

    Its own end is HANDED_FD. It is in a session of its own, out of reach of the terminal's signals.
    """
    import _socket

    from csp.fast_start.child_environment import HELPER, child_environment
    from csp.fast_start.process_environment import process_environment

    env = child_environment(HELPER, process_environment())
    ours, its = (end.detach() for end in _socket.socketpair())

    def enter() -> None:
        os.setsid()
        os.dup2(its, HANDED_FD)
        os.set_inheritable(HANDED_FD, True)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(said, 1)
        os.dup2(said, 2)

    try:
        pid = _start(argv, env, enter, HANDED_FD + 1)
    except OSError:
        os.close(ours)
        raise
    finally:
        os.close(its)
    os.set_blocking(ours, False)
    return pid, ours


def _start(argv: list[str], env: dict[str, str], prepare: "Callable[[], None]", fds: int) -> int:
    """Fork, prepare, execute with the lowest `fds` descriptors; a failure comes back through a pipe."""
    heard, low = os.pipe()
    failed = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, fds)
    os.close(low)
    pid = os.fork()
    if pid == 0:
        try:
            prepare()
            # Undo what a program would inherit of us: the interpreter ignores SIGPIPE, the relay blocks none.
            signal.set_wakeup_fd(-1)
            for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            os.closerange(fds, failed)
            os.closerange(failed + 1, _MAX_FD)
            os.execve(argv[0], argv, env)
        except OSError as exc:
            os.write(failed, b"%d %s" % (exc.errno or 0, os.fsencode(exc.filename or argv[0])))
        finally:
            os._exit(_CAN_NOT_EXEC)
    os.close(failed)
    failure = os.read(heard, _MAX_FAILURE_BYTES)
    os.close(heard)
    if failure:
        os.waitpid(pid, 0)
        code, _, name = failure.partition(b" ")
        raise OSError(int(code), os.strerror(int(code)), os.fsdecode(name))
    return pid


def exec_relay(plan: SpawnPlan, env: dict[str, str], title: str = "") -> None:
    """Become the relay, which keeps our pid, so our children; `env` is also that of its brains.

    Returns only by an OSError. The title is for people who list processes.
    """
    os.makedirs(plan.state, 0o700, exist_ok=True)
    # A pipe would not hold a large environment, and arguments can be read by anybody.
    path = f"{plan.state}/plan.{os.getpid()}"
    written = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    os.unlink(path)
    # Copies that outlive exec, out of the way of the plan's own.
    plan.master = fcntl.fcntl(plan.master, fcntl.F_DUPFD, HANDED_FD + 1)
    if plan.life >= 0:
        plan.life = fcntl.fcntl(plan.life, fcntl.F_DUPFD, HANDED_FD + 1)
    os.write(written, marshal.dumps(vars(plan)))
    os.lseek(written, 0, os.SEEK_SET)
    os.dup2(written, HANDED_FD)
    os.set_inheritable(HANDED_FD, True)
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "relay.py")
    os.execve(sys.executable, [sys.executable, "-I", "-S", script, *([title] if title else [])], env)


def read_plan() -> SpawnPlan:
    """Return the plan that was handed over; close what else was."""
    parts = []
    while part := os.read(HANDED_FD, 1 << 16):
        parts.append(part)
    plan = SpawnPlan(**marshal.loads(b"".join(parts)))
    lowest = HANDED_FD
    for fd in sorted({plan.master, plan.life} - {-1}):
        os.closerange(lowest, fd)
        os.set_inheritable(fd, False)
        os.set_blocking(fd, False)
        lowest = fd + 1
    os.closerange(lowest, _MAX_FD)
    return plan
