"""The gate of the whole suite: a test that does not run is a failure."""

import gc
import logging
import os
import signal
from collections.abc import Generator, Iterator, Sequence
from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.suite.leftovers import leftovers
from tests.suite.optional_packages import has_word_vectors
from tests.suite.sockets import SocketOrigins
from tests.suite.times import TimesByFolder, import_share, in_order, longest_first
from tests.waiting import comes_true_sync

# A token or an address in the developer's shell must not reach a test.
for _name in [name for name in os.environ if name.startswith("CSP_")]:
    del os.environ[_name]

# A shell lets what it runs in the background ignore Ctrl-C, and nohup a lost terminal; what tests start would
# inherit both.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# `ci` gives every run the same examples, `full` more of them; `deep` searches on: pytest tests/room
# --hypothesis-profile=deep. `mutants` does not look for the smallest example of a failure that nobody reads.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=50,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("full", settings.get_profile("ci"), max_examples=200)
settings.register_profile("deep", settings.get_profile("ci"), derandomize=False, max_examples=5000)
settings.register_profile(
    "mutants", settings.get_profile("ci"), max_examples=100, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile("ci")

#: What was told to end may need this long for it on a busy machine.
LONGEST_END_S: Final = 60.0
_NOT_RUN: Final = ("skipped", "xfailed", "xpassed")
_WORKER_KEY: Final = "csp_deselected"


class NoSkipGate:
    """Collects the tests that did not run, here or in a worker of xdist, to fail the session."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._not_run: list[str] = []
        self._deselected: set[str] = set()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._not_run.append(f"skipped: {report.nodeid}")

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        self._deselected.update(item.nodeid for item in items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        outcome, _, _ = self._config.hook.pytest_report_teststatus(report=report, config=self._config)
        if outcome in _NOT_RUN:
            self._not_run.append(f"{outcome}: {report.nodeid}")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        self._deselected.update(getattr(node, "workeroutput", {}).get(_WORKER_KEY, ()))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        workeroutput = getattr(self._config, "workeroutput", None)
        if workeroutput is not None:
            workeroutput[_WORKER_KEY] = sorted(self._deselected)
        elif self._complaints() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        complaints = self._complaints()
        if complaints:
            terminalreporter.section(f"{len(complaints)} tests did not run, which fails the session")
            for complaint in complaints:
                terminalreporter.line(complaint, red=True)

    def _complaints(self) -> list[str]:
        option = self._config.option
        if option.keyword or option.markexpr or option.deselect:
            return self._not_run
        return self._not_run + [f"deselected: {nodeid}" for nodeid in sorted(self._deselected)]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run the tests marked `full` too")
    parser.addoption("--longest-first", action="store_true", help="start the slowest test files first")
    parser.addoption("--in-order", metavar="FILES", help="run test files in this order, with commas between")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "full: an exhaustive or long test that only ./bin/test --full runs")
    config.addinivalue_line("markers", "word_vectors: a test of search by meaning, which needs WordLlama")
    if config.getoption("--full") and not config.getoption("--hypothesis-profile"):
        settings.load_profile("full")
    config.pluginmanager.register(NoSkipGate(config), "csp-no-skip-gate")
    config.pluginmanager.register(SocketOrigins(), "csp-socket-origins")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(TimesByFolder(), "csp-times-by-folder")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Have each worker compile a share of the tests before it reads what the others have compiled."""
    worker = getattr(session.config, "workerinput", None)
    if worker is not None and session.config.getoption("--longest-first"):
        import_share(session.config, int(worker["workerid"][2:]), worker["workercount"])


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for garbage neither while ten thousand tests are collected nor, later, in what they are."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests marked `full` out, unless they are asked for or named one by one.

    Those of the word vectors are left out only where the extra `search` does without them.
    """
    named = {argument for argument in config.args if "::" in argument}
    if not config.getoption("--full") and not named:
        items[:] = [item for item in items if item.get_closest_marker("full") is None]
    if not has_word_vectors():
        items[:] = [item for item in items if item.get_closest_marker("word_vectors") is None]
    if config.getoption("--longest-first"):
        longest_first(items)
    if order := config.getoption("--in-order"):
        in_order(items, order.split(","))


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """Undo what a command run in this process did to the root logger, whose stderr is gone after its test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture(scope="session", autouse=True)
def _no_process_is_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fail if something that a test has started is still running after the last one."""
    folder = tmp_path_factory.getbasetemp()
    yield
    left: list[str] = []

    def are_all_gone() -> bool:
        left[:] = leftovers(folder)
        return not left

    if not comes_true_sync(are_all_gone, LONGEST_END_S):
        lines = "\n".join(left)
        pytest.fail(f"tests have left processes running:\n{lines}", pytrace=False)
