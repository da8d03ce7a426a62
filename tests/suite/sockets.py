"""Report where a leaked socket was made.

A socket that nobody closed is reported when it is collected, which may be in another test, many files later.
Its number leads back to the place.
"""

import re
import socket
import sys
from collections.abc import Generator
from types import FrameType
from typing import Any, Final

import pytest

_DEPTH: Final = 12
_LEAKED: Final = re.compile(r"unclosed <(?:ssl\.SSLSocket|socket\.socket) fd=(\d+)")
_made: Final[dict[int, tuple[str, list[tuple[str, int]]]]] = {}


class SocketOrigins:
    """Notes the test and the callers of each new socket, and adds them to the report of a leak."""

    def __init__(self) -> None:
        self.test = "before the first test"

    def pytest_configure(self) -> None:
        make = socket.socket.__init__

        def noted(made: socket.socket, *args: Any, **options: Any) -> None:
            make(made, *args, **options)
            _made[made.fileno()] = (self.test, _callers(sys._getframe(1)))

        socket.socket.__init__ = noted  # type: ignore[method-assign, assignment]  # a warning names nothing but the number

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.test = nodeid

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.excinfo is not None:
            for number in dict.fromkeys(_LEAKED.findall(report.longreprtext)):
                report.sections.append((f"socket {number} was made", origin(int(number))))
        return report


def origin(number: int) -> str:
    """Return the test and the callers that made the last socket of this number."""
    test, callers = _made.get(number, ("an unknown test", []))
    return "\n".join([f"in {test}", *(f"  {path}:{line}" for path, line in callers)])


def _callers(frame: FrameType | None) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    while frame is not None and len(found) < _DEPTH:
        found.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return found
