"""Configure the destination of log records."""

import logging
import os
import sys
from pathlib import Path
from typing import Final, TextIO

from csp.human.safe_text import visible
from csp.model_providers import sdk_packages

_KNOWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class _Formatter(logging.Formatter):
    """Formats each record as one line: the event, then its fields."""

    def format(self, record: logging.LogRecord) -> str:
        details = {key: value for key, value in vars(record).items() if key not in _KNOWN}
        fields = "".join(f" {key}={value!r}" for key, value in details.items())
        line, *trace = super().format(record).split("\n")
        return visible("\n".join([line + fields, *trace]))


def configure(*, is_verbose: bool, stream: TextIO | None = None) -> None:
    """Send records to a stream, by default stderr; with `is_verbose`, include debug records."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if is_verbose else logging.INFO)


#: Loggers of SDKs and HTTP clients, whose records may contain secrets.
_TALKATIVE: Final = (*sdk_packages(), "httpx2", "httpcore2")


def log_to(path: Path) -> None:
    """Send our records to a private file, so that nothing appears in this terminal."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    configure(is_verbose=False, stream=open(fd, "a", encoding="utf-8"))  # noqa: SIM115  # open until we end
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)


def log_failure(error: Exception) -> None:
    """Log an unexpected error with its traceback."""
    configure(is_verbose=True)
    logging.getLogger(__name__).error("command failed", exc_info=error)
