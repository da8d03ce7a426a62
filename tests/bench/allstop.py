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

from csp.bench.process import TOKEN, Server, start_gateway
from tests.bench.flood import HOST, Plan
from tests.bench.rivals import start_bare

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


def stops_of_gateway(port: int) -> Callable[[], float]:
    """Return what starts a session, then takes the time of its ALLSTOP."""

    def stop() -> float:
        body = {"mode": "debate", "topic": "tabs or spaces", "agents": ["agent0", "agent1"]}
        with contextlib.suppress(RuntimeError):
            ask(port, "POST", "/mode", body)
        began = time.perf_counter()
        ask(port, "POST", "/stop", {"all": True})
        return time.perf_counter() - began

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
            tokens = register(server, args.agents)
            plan = Plan(
                tokens=tokens,
                polls=args.polls,
                sockets=args.sockets,
                busy=args.busy,
                is_fresh=args.fresh,
                again_s=args.again,
            )
            stop = stops_of_gateway(server.port)
            told("idle room", sample(stop, args.seconds / 2), f"RSS {memory_mb(server.pid, 'VmRSS'):.0f} MB")
            with flooded(server.port, plan, args.seconds + 3):
                time.sleep(3)
                times = sample(stop, args.seconds)
                rss, peak = memory_mb(server.pid, "VmRSS"), memory_mb(server.pid, "VmHWM")
            told("room under the flood", times, f"RSS {rss:.0f} MB, peak {peak:.0f} MB")
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
