"""What a cluster costs: python -m tests.chaos.posts --connections 128.

POST /message at one gateway that syncs its own journal, and at the owner of a room with three gateways over
three synced NATS servers. The rounds alternate, so that both meet the same machine.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster.gateways import Gateways
from tests.cluster.nats_servers import NatsCluster
from tests.rooms import LiveRoom


@dataclass
class Rates:
    """The figures of one side, by round."""

    per_s: list[float] = field(default_factory=list)
    alone_ms: list[float] = field(default_factory=list)


async def load(room: LiveRoom, connections: int, seconds: float) -> list[float]:
    """Post over so many connections; return how long each message took."""
    took: list[float] = []
    end = time.monotonic() + seconds
    body = json.dumps({"to": "all", "content": "a message of a usual length, about a line of text"}).encode()
    request = (
        f"POST /message HTTP/1.1\r\nHost: 127.0.0.1:{room.port}\r\nX-Auth-Token: {room.token}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n".encode()
        + body
    )

    async def post() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", room.port)
        try:
            while (began := time.monotonic()) < end:
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                assert b" 20" in head.split(b"\r\n")[0], head
                size = int(head.lower().split(b"content-length:")[1].split()[0])
                await reader.readexactly(size)
                took.append(time.monotonic() - began)
        finally:
            writer.close()

    await asyncio.gather(*(post() for _ in range(connections)))
    return took


async def compare(folder: Path, connections: int, seconds: float, rounds: int) -> dict[str, Rates]:
    """Measure both sides in turn."""
    found = {"one gateway": Rates(), "cluster": Rates()}
    with ExitStack() as stack:
        alone = stack.enter_context(LiveRoom(folder / "alone"))
        nats = stack.enter_context(NatsCluster(folder / "nats"))
        gateways = stack.enter_context(Gateways(folder / "gateways", nats.urls))
        owner = await asyncio.to_thread(gateways.owner)
        for _ in range(rounds):
            for name, room in (("one gateway", alone), ("cluster", owner)):
                await load(room, connections, seconds / 5)
                many = await load(room, connections, seconds)
                found[name].per_s.append(len(many) / seconds)
                found[name].alone_ms.append(1000 * statistics.median(await load(room, 1, seconds / 2)))
    return found


def figures(found: dict[str, Rates]) -> dict[str, Any]:
    """Return the figures, and the ratios of each round."""
    one, cluster = found["one gateway"], found["cluster"]
    rates = [theirs / ours for ours, theirs in zip(one.per_s, cluster.per_s, strict=True)]
    times = [theirs / ours for ours, theirs in zip(one.alone_ms, cluster.alone_ms, strict=True)]
    return {
        "posts_per_s": {name: round(statistics.median(side.per_s)) for name, side in found.items()},
        "alone_p50_ms": {name: round(statistics.median(side.alone_ms), 2) for name, side in found.items()},
        "rate_ratio": {"median": round(statistics.median(rates), 2), "least": round(min(rates), 2)},
        "alone_ratio": {"median": round(statistics.median(times), 2), "most": round(max(times), 2)},
    }


def main(argv: list[str] | None = None) -> int:
    """Run it and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.posts", description=__doc__)
    parser.add_argument("--connections", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=5.0, help="length of a load")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="csp-posts-") as folder:
        found = asyncio.run(compare(Path(folder), options.connections, options.seconds, options.rounds))
    machine = {"load": [round(load, 1) for load in os.getloadavg()]}
    print(json.dumps(figures(found) | machine, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
