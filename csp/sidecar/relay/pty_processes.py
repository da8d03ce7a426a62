"""Start the processes around a pseudo-terminal: the child, the brain and the relay.

All are started with plain fork and exec, because importing subprocess would cost the relay too much memory.
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

#: The descriptor from which a relay reads its plan, and through which a brain reaches its relay.
HANDED_FD = 3
_MAX_FD = 1 << 16
_MAX_FAILURE_BYTES = 8192
_CAN_NOT_EXEC = 127


class SpawnPlan:
    """The parameters of a relay. All of them can be written with marshal."""

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
        #: The pid of the process in the pseudo-terminal, and our end of it.
        self.child, self.master = child, master
        #: Our end of the pipe for `stand_by`, or -1 if the child cannot be stopped.
        self.life = life
        #: The command, environment and directory of the child, for restarting it.
        self.argv, self.env, self.cwd = argv, env, cwd
        #: The command that starts a brain.
        self.brain_argv = brain_argv
        #: The folder for records of terminals, and the log file for the output of brains.
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
    """Start a program in a new pseudo-terminal; return its pid and the master end.

    `argv[0]` is a path. If it cannot be executed, OSError is raised and no child remains. `like` is the
    person's terminal or the result of tcgetattr for it; its erase character, UTF-8 mode and so on are copied.
    If `life` is an end of a pipe, Ctrl-Z can stop the child until the other end of the pipe is closed.
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
    """Start a brain with the required part of our environment; return its pid and our end of its socket.

    The brain's end is HANDED_FD. It runs in its own session, which the terminal's signals do not reach.
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
    """Fork, prepare, and exec with the lowest `fds` descriptors; a failure is reported through a pipe."""
    heard, low = os.pipe()
    failed = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, fds)
    os.close(low)
    pid = os.fork()
    if pid == 0:
        try:
            prepare()
            # Reset the inherited signal state: the interpreter ignores SIGPIPE, but the relay blocks none.
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
    """Replace this process with the relay, which keeps our pid and our children; its brains also get `env`.

    Returns only by raising OSError. The title is shown in process lists.
    """
    os.makedirs(plan.state, 0o700, exist_ok=True)
    # A file, because a pipe cannot hold a large environment and anybody can read arguments.
    path = f"{plan.state}/plan.{os.getpid()}"
    written = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    os.unlink(path)
    # Copies that survive exec and do not collide with the descriptor of the plan.
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
    """Return the plan that was handed over, and close the other inherited descriptors."""
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
