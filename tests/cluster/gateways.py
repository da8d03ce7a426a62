"""Real gateways of one room over real NATS servers, each a process with folders of its own."""

import contextlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from csp.errors import CspError
from tests.rooms import LiveRoom
from tests.waiting import wait_until_sync

ROOM: Final = "shared"
TOKEN: Final = "the-token-of-the-room"


class Gateways:
    """Several gateways of one room."""

    def __init__(self, folder: Path, servers: Sequence[str], count: int = 3, *options: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        secret = folder / "secret"
        secret.write_text("a secret that all gateways share\n")
        words = ("--journal", ",".join(servers), "--secret-file", str(secret), *options)
        env = {"CSP_AUTH_TOKEN": TOKEN}
        self.all = [LiveRoom(folder / f"g{number}", *words, name=ROOM, env=env) for number in range(count)]

    def __enter__(self) -> Self:
        try:
            for gateway in self.all:
                gateway.launch()
            for gateway in self.all:
                gateway.wait()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ThreadPoolExecutor() as pool:
            list(pool.map(LiveRoom.stop, self.all))

    @property
    def urls(self) -> list[str]:
        return [gateway.url for gateway in self.all]

    def health(self, gateway: LiveRoom) -> dict[str, Any]:
        """Return what a gateway says of itself; nothing if it does not answer."""
        with contextlib.suppress(CspError):
            found: dict[str, Any] = gateway.gateway.get("/health")
            return found
        return {}

    def owner(self) -> LiveRoom:
        """Return the gateway that decides, once there is one."""

        def find() -> LiveRoom | None:
            leading = [one for one in self.all if self.health(one).get("replica") is False]
            return leading[0] if len(leading) == 1 else None

        found = wait_until_sync(find, what="an owner")
        assert found is not None
        return found

    def edges(self) -> list[LiveRoom]:
        """Return the other gateways."""
        owner = self.owner()
        return [one for one in self.all if one is not owner]

    def mirrors(self) -> list[bytes]:
        """Return the journals of all gateways."""
        return [(one.folder / "journal.jsonl").read_bytes() for one in self.all]

    def wait_equal(self) -> bytes:
        """Return the journal of all gateways, once they agree."""

        def same() -> bytes | None:
            first, *rest = self.mirrors()
            return first if all(other == first for other in rest) else None

        found = wait_until_sync(same, what="equal mirrors")
        assert found is not None
        return found
