"""Time ALLSTOP while agents flood the room: python -m tests.bench.allstop"""

import argparse
import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.bench.flood import HOST, Plan
from tests.bench.machine.process import TOKEN, Server, start_gateway
from tests.bench.rivals import start_bare
from tests.bench.stops import Journal, Place, Press, all_ways, start_up_s

_ROOT: Final = Path(__file__).resolve().parents[2]
_TIMEOUT_S: Final = 60.0


def ask(port: int, method: str, path: str, body: object = None, token: str = TOKEN) -> Any:
    """Return what a new connection is answered."""
    data = b"" if body is None else json.dumps(body).encode()
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: {HOST}\r\nX-Auth-Token: {token}\r\n"
        f"Connection: close\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    with socket.create_connection((HOST, port), _TIMEOUT_S) as peer:
        peer.sendall(head.encode() + data)
        answer = b""
        while not answer.endswith((b"}", b"]")):
            piece = peer.recv(65536)
            if not piece:
                break
            answer += piece
    status, _, text = answer.partition(b"\r\n\r\n")
    if b" 20" not in status[:13]:
        raise RuntimeError(f"{path} was answered {answer[:300]!r}")
    return json.loads(text)


def memory_mb(pid: int, field: str) -> float:
    """Return a figure of a process's memory."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    found = next(line for line in lines if line.startswith(field))
    return int(found.split()[1]) / 1024


def begin_session(port: int) -> None:
    """Begin a session for the next ALLSTOP to end."""
    body = {"mode": "debate", "topic": "tabs or spaces", "agents": ["agent0", "agent1"]}
    ask(port, "POST", "/mode", body)


def stops(place: Place, press: Press) -> Callable[[], float]:
    """Return a function that starts a session and measures how long this way takes to stop it."""
    journal = Journal(place.journal)

    def stop() -> float:
        begin_session(place.server.port)
        journal.skip()
        began = time.perf_counter()
        press()
        return journal.wait_ended() - began

    return stop


def stops_of_bare(port: int) -> Callable[[], float]:
    """Return what takes the time of one request."""

    def stop() -> float:
        began = time.perf_counter()
        ask(port, "POST", "/stop", {"all": True})
        return time.perf_counter() - began

    return stop


def sample(stop: Callable[[], float], seconds: float) -> list[float]:
    """Return the times of all stops in so many seconds."""
    found: list[float] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until or len(found) < 5:
        found.append(stop())
        time.sleep(0.02)
    return sorted(found)


@contextlib.contextmanager
def flooded(port: int, plan: Plan, seconds: float) -> Iterator[None]:
    """Flood while the block runs."""
    command = [sys.executable, "-m", "tests.bench.flood", str(port), str(seconds)]
    flooder = subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert flooder.stdin is not None
    flooder.stdin.write(msgspec.json.encode(plan))
    flooder.stdin.close()
    try:
        yield
    finally:
        out = flooder.stdout.read() if flooder.stdout else b""
        flooder.wait()
        print(f"  the flood: {out.decode()}", file=sys.stderr)


def told(name: str, times: list[float], extra: str = "") -> None:
    """Print the figures of one measurement."""
    p50, p99 = times[len(times) // 2], times[min(len(times) - 1, int(len(times) * 0.99))]
    print(
        f"{name:32} n {len(times):5}  p50 {p50 * 1000:8.1f} ms  p99 {p99 * 1000:8.1f} ms  "
        f"max {times[-1] * 1000:8.1f} ms  {extra}",
        flush=True,
    )


def register(server: Server, count: int) -> list[str]:
    """Return the tokens of new agents."""
    return [
        str(ask(server.port, "POST", "/register", {"agentId": f"agent{number}"})["token"])
        for number in range(count)
    ]


def measure(place: Place, plan: Plan, seconds: float) -> None:
    """Measure every way to ALLSTOP in an idle room, then under one flood; each for so many seconds."""
    server = place.server
    link = str(ask(server.port, "POST", "/page/link", {})["path"])
    with all_ways(place, link) as ways:
        told("csp stop, without a room", [start_up_s(place)], "Python with its modules, in all of csp stop")
        for name, press in ways.items():
            told(f"idle room, {name}", sample(stops(place, press), seconds / 2))
        print(f"{'idle room':32} RSS {memory_mb(server.pid, 'VmRSS'):.0f} MB", flush=True)
        with flooded(server.port, plan, (seconds + 1) * len(ways) + 3):
            time.sleep(3)
            for name, press in ways.items():
                told(f"flood, {name}", sample(stops(place, press), seconds))
            rss, peak = memory_mb(server.pid, "VmRSS"), memory_mb(server.pid, "VmHWM")
        told("csp stop, without a room", [start_up_s(place)], "after the flood")
        print(f"{'flood':32} RSS {rss:.0f} MB, peak {peak:.0f} MB", flush=True)


def main() -> int:
    """Measure an idle room, a flooded room, a flooded bare server."""
    parser = argparse.ArgumentParser("python -m tests.bench.allstop", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--agents", type=int, default=100)
    parser.add_argument("--polls", type=int, default=8192)
    parser.add_argument("--sockets", type=int, default=4096)
    parser.add_argument("--busy", type=int, default=1, help="HTTP connections of each agent")
    parser.add_argument("--fresh", action="store_true", help="a new connection for each request")
    parser.add_argument("--again", type=float, default=60.0, help="seconds until who was refused comes back")
    parser.add_argument("--no-bare", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="csp-allstop-") as folder:
        with start_gateway(Path(folder)) as server:
            plan = Plan(
                tokens=register(server, args.agents),
                polls=args.polls,
                sockets=args.sockets,
                busy=args.busy,
                is_fresh=args.fresh,
                again_s=args.again,
            )
            measure(Place(server, Path(folder)), plan, args.seconds)
            print((Path(folder) / "server.log").read_text()[-2000:], file=sys.stderr)
        if args.no_bare:
            return 0
        with start_bare(Path(folder)) as server:
            stop = stops_of_bare(server.port)
            told("bare server, idle", sample(stop, args.seconds / 2))
            with flooded(server.port, plan, args.seconds + 3):
                time.sleep(3)
                told("bare server under the flood", sample(stop, args.seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
