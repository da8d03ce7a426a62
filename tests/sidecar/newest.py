"""A room with real CLIs in it, for the facts about the newest of them."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.clis.bringup import RealCli, SetUp, bring_up
from tests.clis.loopback import Loopback
from tests.models.rules import Rule
from tests.models.server import ModelServer
from tests.sidecar.stage import Seat, Stage
from tests.waiting import comes_true_sync, wait_until_sync

PATIENCE_S: Final = 300.0
#: How long an Enter may take to show, before it is pressed again.
_AGAIN_S: Final = 2.0
_TRIES: Final = 100


class Scene:
    """A room with real CLIs in it."""

    def __init__(self, stage: Stage, server: ModelServer, loopback: Loopback, folder: Path) -> None:
        self.stage, self.server = stage, server
        self._loopback, self._folder = loopback, folder

    def sit(self, name: str, *options: str, set_up: SetUp | None = None) -> Seat:
        found = self.cli(name, set_up)
        return self.stage.seat(name, found.argv, *options, env=found.env, cwd=found.cwd)

    def cli(self, name: str, set_up: SetUp | None = None) -> RealCli:
        return bring_up(name, self.server, self._loopback, self._folder, set_up)

    def notices(self) -> list[str]:
        page = self.stage.room.gateway.get("/history", types="system", limit=200)
        return [item["text"] for item in page["items"]]

    def press(self, verb: str, name: str) -> str:
        """Return the id of the control."""
        return str(self.stage.room.gateway.post(f"/agents/{name}/{verb}", None)["id"])

    def approve(self, name: str) -> None:
        """Approve as a person does: once more where the room says that the dialog stayed open."""
        for _ in range(_TRIES):
            pressed = self.press("approve", name)
            why = self.stage.wait_for(pressed, name, "confirmed", "failed", "expired", timeout_s=PATIENCE_S)
            if self.stage.state(pressed, name)[0] == "confirmed":
                return
        raise AssertionError(f"the dialog of {name} cannot be approved: {why}")

    def wait(self, is_true: Callable[[], object], what: str) -> None:
        wait_until_sync(is_true, PATIENCE_S, what)

    def enter(self, seat: Seat, is_taken: Callable[[], object]) -> None:
        """Press Enter as a person does: once more where it was swallowed."""
        for _ in range(_TRIES):
            seat.keys("Enter")
            if comes_true_sync(is_taken, _AGAIN_S):
                return
        raise AssertionError(f"Enter was swallowed:\n{seat.screen()}")

    def answer(self, message: str, name: str) -> str:
        reply = self.stage.reply_to(message, name, PATIENCE_S)
        assert self.stage.state(message, name)[0] == "confirmed"
        return str(reply["text"])


@contextmanager
def scene(folder: Path, *rules: Rule) -> Iterator[Scene]:
    loopback = Loopback()
    with (
        loopback,
        ModelServer(list(rules), listener=loopback.listener) as server,
        Stage(folder / "stage") as stage,
    ):
        yield Scene(stage, server, loopback, folder)


def addresses(home: Path) -> dict[int, str]:
    """Return where each running Claude of a home takes messages of others, by its process."""
    found = [json.loads(file.read_text("utf-8")) for file in (home / "config" / "sessions").glob("*.json")]
    return {one["pid"]: f"uds:{one['messagingSocketPath']}" for one in found if "messagingSocketPath" in one}
