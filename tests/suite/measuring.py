"""Measure one process of the suite, as `recording.py` wants it: as a plugin of pytest, or as a start-up hook.

As a hook it runs at the start of every Python of the environment, before any other code, so it imports
nothing of this project and does nothing for a process that does not belong to a test.
"""

import atexit
import os
import sys
import time
from collections.abc import Generator
from typing import Any

#: The hook passes the folder for the data as a global; the plugin finds it where the hook has put it.
PLACE: str = globals().get("PLACE", "")
#: What measures this process, once it does.
RUNNING: list[Any] = []
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def start(context: str) -> Any:
    import coverage

    measured = coverage.Coverage(
        data_file=os.path.join(PLACE, "data"),
        data_suffix=True,
        include=[os.path.join(ROOT, "csp", "*")],
        config_file=False,
        context=context or None,
        messages=False,
    )
    measured.set_option("run:sigterm", True)
    # The output of a process is part of many tests.
    quiet = ["no-data-collected", "module-not-imported", "module-not-measured", "couldnt-parse"]
    measured.set_option("run:disable_warnings", quiet)
    measured.set_option("run:patch", ["_exit"])
    measured.start()
    atexit.register(save, measured)
    if not RUNNING:
        os.register_at_fork(after_in_child=restart)
    RUNNING[:] = [measured]
    return measured


def restart() -> None:
    """Begin again in a forked process, for the test that runs now."""
    RUNNING[0].stop()
    atexit.unregister(save)
    start(running_test())


def save(measured: Any) -> None:
    measured.stop()
    measured.save()


def running_test() -> str:
    """Return the test file that started this process, or nothing."""
    pid = os.getppid()
    while pid > 1:
        if (test := _read(f"{PLACE}/worker.{pid}")) is not None:
            return test
        try:
            with open(f"/proc/{pid}/stat") as file:
                pid = int(file.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            return ""
    # A daemon has no parents left, but it works in a folder of its test.
    around = " ".join([os.getcwd(), *os.environ.values(), *sys.argv])
    for name in os.listdir(PLACE):
        if name.startswith("folder.") and f"/popen-{name[7:]}/" in around:
            return _read(f"{PLACE}/{name}") or ""
    return ""


def _read(path: str) -> str | None:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return None


def _write(path: str, text: str) -> None:
    with open(f"{path}.new", "w") as file:
        file.write(text)
    os.replace(f"{path}.new", path)


class Plugin:
    """Tells the other processes which test file runs in this worker, and measures the worker itself."""

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._measured = start("")

    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> Generator[None, Any, Any]:
        test = item.nodeid.partition("::")[0]
        _write(f"{PLACE}/worker.{os.getpid()}", test)
        _write(f"{PLACE}/folder.{self._worker}", test)
        self._measured.switch_context(test)
        began = time.monotonic()
        result = yield
        with open(f"{PLACE}/seconds.{os.getpid()}", "a") as file:
            file.write(f"{test} {time.monotonic() - began:.3f}\n")
        return result


def pytest_configure(config: Any) -> None:
    import pytest

    global PLACE
    PLACE = os.environ["MEASURED_INTO"]
    worker = getattr(config, "workerinput", {}).get("workerid")
    if worker is not None:
        Plugin.pytest_runtest_protocol = pytest.hookimpl(wrapper=True)(Plugin.pytest_runtest_protocol)  # type: ignore[method-assign]
        config.pluginmanager.register(Plugin(worker), "csp-measuring")


if __name__ == "<run_path>" and PLACE and (_test := running_test()):
    start(_test)
