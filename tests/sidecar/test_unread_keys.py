"""Keys that a CLI has not read yet: nothing is pressed again behind them, for it would read both at once.

Gemini CLI that reads two Enters at once submits its prompt twice.
"""

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

from csp.sidecar.brain.agent_controls import AgentControls
from csp.terminal.screen_reader import ScreenDialog
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


class Screen:
    """A pane with a dialog that stays, in front of a CLI that reads its keys or does not."""

    def __init__(self, *, is_read: bool) -> None:
        self.profile, self.port, self.pane = SimpleNamespace(name="fake"), self, self
        self.pressed: list[bytes] = []
        self.dialog = ScreenDialog(kind="shell", question="Do you want to proceed?", subject="ls", choices=())
        self._is_read = is_read

    def write(self, keys: bytes) -> "asyncio.Future[bool]":
        self.pressed.append(keys)
        written: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if self._is_read:
            written.set_result(True)
        return written

    @property
    def reading(self) -> Any:
        return SimpleNamespace(dialog=self.dialog)

    async def wait(self, until: float) -> None:
        await asyncio.sleep(0)


async def pressed(screen: Screen) -> tuple[str, list[bytes]]:
    controls = AgentControls(
        *cast("tuple[Any, Any, Any, Any, Any, Any]", (screen, None, None, None, None, None))
    )
    problem = await controls._press("1", screen.dialog)
    return problem, screen.pressed


async def test_a_key_that_was_read_in_vain_is_pressed_again(monkeypatch: Any) -> None:
    monkeypatch.setattr("csp.sidecar.brain.agent_controls.ANSWERED_S", 0.02)

    assert await pressed(Screen(is_read=True)) == ("the dialog stayed open", [b"1", b"1"])


async def test_a_key_that_was_not_read_is_not_pressed_again(monkeypatch: Any) -> None:
    """The second would answer the next dialog, which nobody has seen."""
    monkeypatch.setattr("csp.sidecar.brain.agent_controls.ANSWERED_S", 0.02)

    assert await pressed(Screen(is_read=False)) == ("the dialog stayed open", [b"1"])
