"""Keep the machine busy while the suite runs."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Run `count` processes that compute without a pause."""
    command = [sys.executable, "-m", "tests.suite.stress"]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.communicate()


def be_busy() -> None:
    """Compute until the standard input is closed, as it also is when the other side is killed."""
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    while True:
        pass


if __name__ == "__main__":
    be_busy()
