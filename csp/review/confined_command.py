"""Run one shell command with limits; when it ends, also end every process that it started.

This is run as a script, in an interpreter without site-packages, with the arguments LIFE COMMAND. LIFE is the
descriptor of the read end of a pipe; when the write end is closed, the command is killed. If the system
supports it, processes that the command leaves running become our children regardless of session, group or
environment, so they can be found.

The limits protect against mistakes: a command of the same user can find ways around all of them.
"""

import contextlib
import os
import resource
import select
import signal
import sys

_SHELL = "/bin/sh"
_CAN_NOT_EXEC = 127
_FILE_BYTES = 4 << 30
_LEAST_MEMORY = 2 << 30
_MOST_FILES = 65_536
_MORE_PROCESSES = 8192
_STOP_PASSES = 50
_SET_CHILD_SUBREAPER = 36
_ASK_AGAIN_S = 0.02


def run(life: int, command: str) -> int:
    """Run the command and return its status once all its processes are gone."""
    if sys.platform == "linux":
        import ctypes

        # Become the parent of the command's orphaned processes.
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    heard, news = os.pipe()
    os.set_blocking(news, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(news, warn_on_full_buffer=False)
    shell = os.fork()
    if shell == 0:
        os.closerange(3, _MOST_FILES)
        _limit_myself()
        with contextlib.suppress(OSError):
            os.execv(_SHELL, [_SHELL, "-c", command])
        os._exit(_CAN_NOT_EXEC)
    status = None
    while status is None and life not in select.select([life, heard], [], [])[0]:
        os.read(heard, 1024)
        status, _ = _reap(shell)
    _end_family(shell)
    return status if status is not None else signal.SIGKILL


def _limit_myself() -> None:
    """Apply the limits to this process, which then becomes the command."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    # The interpreter ignores SIGPIPE and SIGXFSZ, and the command would inherit this.
    for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    # The limit on processes counts all tasks of this user; the other limits are per process.
    mine, tasks = os.getuid(), 0
    with contextlib.suppress(OSError):
        for entry in os.scandir("/proc"):
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    tasks += len(os.listdir(f"/proc/{entry.name}/task")) if entry.stat().st_uid == mine else 0
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: _FILE_BYTES,
        resource.RLIMIT_DATA: max(memory // 2, _LEAST_MEMORY),
        resource.RLIMIT_NOFILE: _MOST_FILES,
        resource.RLIMIT_NPROC: tasks + _MORE_PROCESSES,
    }
    for which, most in limits.items():
        soft, hard = resource.getrlimit(which)
        # Lower only the soft limit; a command that needs more can use ulimit -S.
        if soft == resource.RLIM_INFINITY or soft > most:
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(which, (most, hard))
    # Make the system kill the command first when memory runs out.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def _reap(wanted: int) -> "tuple[int | None, bool]":
    """Reap all dead children; return the status of the wanted one, and whether others are still running."""
    status = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, found = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return status, True
            status = found if pid == wanted else status
    return status, False


def _end_family(shell: int) -> None:
    """Kill the command's remaining processes until there are none."""
    with contextlib.suppress(OSError):
        os.killpg(shell, signal.SIGKILL)
    while True:
        # Stopped processes cannot start others, so the set of processes to kill is final.
        seen: set[int] = set()
        for _ in range(_STOP_PASSES):
            new = _descendants() - seen
            if not new:
                break
            _send(new, signal.SIGSTOP)
            seen |= new
        _send(seen, signal.SIGKILL)
        if not _reap(shell)[1]:
            return
        select.select([], [], [], _ASK_AGAIN_S)


def _send(pids: "set[int]", number: int) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def _descendants() -> "set[int]":
    """Return the live descendants of this process, or none without /proc."""
    parents: dict[int, int] = {}
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit():
                with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
                    if state not in (b"Z", b"X"):
                        parents[int(name)] = int(parent)
    found: set[int] = set()
    new = {os.getpid()}
    while new:
        new = {pid for pid, parent in parents.items() if parent in new} - found
        found |= new
    return found


if __name__ == "__main__":
    status = run(int(sys.argv[1]), sys.argv[2])
    # Exit in the same way as the command.
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status))
