"""Write the transcript that csp.clis.plain.transcript describes."""

import json
import os
import time


class Record:
    """Appends one line for each event to the file of this run; without a file it does nothing."""

    def __init__(self, path: str) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._fd = os.open(path, flags, 0o600) if path else -1

    def write(self, kind: str, **fields: object) -> None:
        """Add an event; one write, so that a reader never sees half of it for long."""
        if self._fd < 0:
            return
        line = json.dumps({"type": kind, "ts": time.time(), **fields}, ensure_ascii=False)
        data = (line + "\n").encode("utf-8", "replace")
        while data:
            data = data[os.write(self._fd, data) :]

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1
