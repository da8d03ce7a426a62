"""Keys that a CLI has not read yet: another Enter must wait, for it would read both at once.

Gemini CLI that reads two Enters at once submits its prompt twice.
"""

import time
from pathlib import Path
from typing import Final

from tests.sidecar.panes import Brains, Pane, launcher, python
from tests.sidecar.test_relay import RAW

#: Reads nothing until a file is there; then all at once.
SLEEPY: Final = (
    RAW
    + """
import time
while not os.path.exists("awake"): time.sleep(0.01)
os.write(1, b"<" + os.read(0, 65536) + b">")
while True: os.write(1, os.read(0, 65536))
"""
)


def test_the_brain_is_told_of_what_the_child_has_read_not_of_what_is_written(tmp_path: Path) -> None:
    with Brains(tmp_path) as brains, Pane(launcher(python(SLEEPY), tmp_path, brains.command)) as pane:
        brain = brains.next()
        pane.expect(b"READY")
        pane.wait_raw()
        brain.send(b"I", (7).to_bytes(4, "big") + b"\r")
        # Long after the key was written: the relay passes the person's keys on meanwhile.
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            pane.press(b"k")
            while (told := brain.next()) != (b"K", b"k"):
                assert told[0] != b"D", "told as read, though the child has read nothing"
        (tmp_path / "awake").touch()

        pane.expect(b"k>")
        assert int.from_bytes(brain.expect(b"D"), "big") == 7
