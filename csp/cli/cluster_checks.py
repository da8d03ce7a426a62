"""Check a cluster: its servers and streams, and this machine's copy of a room."""

import json
import shutil
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from csp.cli.cli_checks import CheckResult
from csp.cluster.bus import Bus
from csp.cluster.config_files import MONITOR_ABOVE
from csp.cluster.names import SHARDS, shard_of, stream_name
from csp.cluster.peers import clock_offsets
from csp.cluster.servers import NatsServers
from csp.cluster.setup import API_S, stream_info, unfit
from csp.cluster.stream_log import StreamLog
from csp.errors import Broken, CspError
from csp.journal.journal_repair import find_last_seq
from csp.journal.jsonl_journal import JOURNAL_NAME

if TYPE_CHECKING:
    from csp.config import Settings

#: Less free space than this is a problem.
LOW_BYTES: Final = 1 << 30
_MONITOR_S: Final = 2.0
#: Each gateway says several times in this long that it lives.
_LISTEN_S: Final = 1.0
_MOST_APART_S: Final = 1.0
#: A replica says every second that it lives.
_SILENT_NS: Final = 5 * 10**9
#: This many servers can lose one and keep everything.
_SAFE: Final = 3


async def check_cluster(servers: NatsServers, settings: "Settings", room: str) -> AsyncIterator[CheckResult]:
    """Run all checks of a cluster, none of which change anything."""
    found = [await check_server(servers, url) for url in servers.urls]
    for result in found:
        yield result
    for url in servers.urls:
        yield check_storage(url)
    if not any(result.ok for result in found):
        return
    bus = await Bus.open(servers)
    try:
        async for result in _check_streams(bus, len(servers.urls)):
            yield result
        yield await check_clocks(bus)
        yield await check_mirror(bus, settings.history_dir / room, room)
    except Broken as error:
        yield CheckResult("cluster", False, error.message, error.hint)
    finally:
        await bus.close()


async def check_server(servers: NatsServers, url: str) -> CheckResult:
    """Check that a server answers and is new enough."""
    name = f"server {url}"
    try:
        bus = await Bus.open(NatsServers((url,), servers.ca, servers.creds))
    except CspError as error:
        return CheckResult(name, False, error.message, error.hint)
    try:
        account = await bus.ask("INFO", {}, timeout_s=API_S)
        version, is_encrypted = bus.server_version, url.startswith("tls:")
    except Broken as error:
        return CheckResult(name, False, error.message, error.hint)
    finally:
        await bus.close()
    if "error" in account:
        problem = account["error"].get("description", "unknown error")
        return CheckResult(
            name, False, f"version {version}, without JetStream: {problem}", "enable jetstream"
        )
    how = "with TLS" if is_encrypted else "without TLS"
    return CheckResult(name, True, f"version {version}, {how}")


def check_storage(url: str) -> CheckResult:
    """Check that a server syncs what it acknowledges, and has space; its own port for that may be closed."""
    name = f"storage of {url}"
    parts = urlsplit(url)
    host, port = parts.hostname or "", (parts.port or 0) + MONITOR_ABOVE
    where = f"http://{f'[{host}]' if ':' in host else host}:{port}/varz"
    try:
        with urllib.request.urlopen(where, timeout=_MONITOR_S) as answer:
            state: dict[str, Any] = json.load(answer).get("jetstream", {})
    except (OSError, ValueError):
        return CheckResult(name, True, f"{where} cannot be read from here, so it was not checked")
    config, used = state.get("config", {}), int(state.get("stats", {}).get("storage", 0))
    free = int(config.get("max_storage", 0)) - used
    detail = f"{_size(used)} used, {_size(free)} free"
    if not config.get("sync_always"):
        advice = "set sync_interval: always in its jetstream block"
        what = f"a power cut loses up to two minutes of acknowledged messages; {detail}"
        return CheckResult(name, False, what, advice)
    if free < LOW_BYTES:
        return CheckResult(name, False, detail, "give it more space: max_file_store, or a larger disk")
    return CheckResult(name, True, f"synced before it is acknowledged, {detail}")


async def _check_streams(bus: Bus, servers: int) -> AsyncIterator[CheckResult]:
    """Check each stream that is there; the first room of a stream creates it."""
    known = {
        name: await stream_info(bus, shard) for shard, name in enumerate(map(stream_name, range(SHARDS)))
    }
    there = {name: info for name, info in known.items() if info is not None}
    for shard, name in enumerate(known):
        if (info := known[name]) is not None:
            yield check_stream(name, info, unfit(info["config"], shard), servers)
    if len(there) < SHARDS:
        missing = SHARDS - len(there)
        yield CheckResult("streams", True, f"{len(there)} of {SHARDS}; rooms create the other {missing}")


def check_stream(name: str, info: dict[str, Any], problem: str, servers: int) -> CheckResult:
    """Check a stream's configuration and its replicas."""
    check, state, cluster = f"stream {name}", info["state"], info.get("cluster", {})
    replicas = int(info["config"]["num_replicas"])
    detail = f"{state['messages']:,} batches, {_size(state['bytes'])}, {replicas} replicas"
    if problem:
        return CheckResult(check, False, f"{problem}; it cannot hold rooms")
    behind = sorted(peer["name"] for peer in cluster.get("replicas", ()) if not _keeps_up(peer))
    if behind:
        advice = "are those servers running? they catch up by themselves"
        return CheckResult(check, False, f"{detail}; behind or gone: {', '.join(behind)}", advice)
    if replicas < _SAFE:
        what = f"{detail}; a lost disk loses its rooms"
        advice = f"nats stream edit {name} --replicas {_SAFE}" if servers >= _SAFE else "use three servers"
        return CheckResult(check, False, what, advice)
    return CheckResult(check, True, f"{detail}, leader {cluster.get('leader') or 'being elected'}")


def _keeps_up(replica: dict[str, Any]) -> bool:
    is_heard = int(replica.get("active", 0)) < _SILENT_NS
    return bool(replica.get("current")) and not replica.get("offline") and is_heard


async def check_clocks(bus: Bus) -> CheckResult:
    """Compare the clocks of the running gateways with this machine's."""
    ahead = await clock_offsets(bus, _LISTEN_S)
    if not ahead:
        return CheckResult("clocks", True, "no gateway is running")
    most = max(ahead.values(), key=abs)
    detail = f"{len(ahead)} gateways, at most {abs(most):.1f} s apart from this machine"
    if abs(most) > _MOST_APART_S:
        return CheckResult("clocks", False, detail, "synchronise the clocks of the machines, as with chrony")
    return CheckResult("clocks", True, detail)


async def check_mirror(bus: Bus, folder: Path, room: str) -> CheckResult:
    """Compare the end of this machine's copy of a room with that of the room's log."""
    check = f"copy of room {room}"
    end = await StreamLog(bus, room).last_seq() if await stream_info(bus, shard_of(room)) else 0
    path = folder / JOURNAL_NAME
    if not path.is_file():
        return CheckResult(check, True, f"none at {path}; the log ends at #{end}")
    with path.open("rb") as file:
        last, _ = find_last_seq(file.fileno(), path.stat().st_size)
    free = shutil.disk_usage(folder).free
    detail = f"{path} ends at #{last}, the log at #{end}; {_size(free)} free"
    if last > end:
        advice = "is this another room? compare them with: csp journal compare"
        return CheckResult(check, False, detail, advice)
    if free < LOW_BYTES:
        return CheckResult(check, False, detail, "free some space")
    return CheckResult(check, True, detail)


def _size(count: int) -> str:
    """Return a number of bytes for people."""
    size, unit = float(count), "B"
    for larger in ("KB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.0f} {unit}" if size >= 10 or unit == "B" else f"{size:.1f} {unit}"
