"""Check this machine, or a room's journal."""

import asyncio
import os
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from csp import __version__
from csp.cli.arguments import HISTORY_DIR, INSECURE, JSON, NATS, takes, value
from csp.cli.cli_checks import CheckResult, check_clis
from csp.cli.output import is_terminal, put, put_json
from csp.cli.verb_call import VerbCall
from csp.config import Settings, process_environment
from csp.errors import CspError, NotFound
from csp.http_client import GatewayClient, field
from csp.room_registry import RunningRoom, running_rooms

_OLDEST_PYTHON = (3, 11)
_PACKAGE = "csp-groupchat"


@takes(
    value(
        "--journal",
        "SERVERS",
        "read the whole journal and check every line; with nats://HOST:4222,...: check that cluster instead",
        nargs="?",
        const="",
    ),
    HISTORY_DIR,
    *NATS,
    INSECURE,
    JSON,
    examples=("csp doctor --journal", "csp doctor --journal tls://n1.lan,tls://n2.lan,tls://n3.lan"),
)
def doctor(call: VerbCall) -> int:
    """Print the findings; fail if anything is wrong."""
    if call.args.journal == "":
        return _journal(call)
    if call.args.journal is not None:
        return asyncio.run(_cluster(call, call.args.journal))
    findings = []
    for finding in check_machine(call.settings, process_environment(), call.cwd):
        findings.append(finding)
        # Printed immediately, because a slow CLI may take minutes to respond.
        _show(call, finding)
    return _report(call, findings)


async def _cluster(call: VerbCall, text: str) -> int:
    from csp.cli.cluster_checks import check_cluster
    from csp.cluster.servers import read_servers

    servers = read_servers(text, call.settings, is_insecure=call.args.insecure)
    findings = []
    async for finding in check_cluster(servers, call.settings, call.settings.room):
        findings.append(finding)
        _show(call, finding)
    return _report(call, findings)


def _show(call: VerbCall, finding: CheckResult) -> None:
    if not call.is_json:
        advice = f" ({finding.advice})" if finding.advice else ""
        put(f"{'ok' if finding.ok else 'FAIL':4}  {finding.check}: {finding.detail}{advice}")


def _report(call: VerbCall, findings: list[CheckResult]) -> int:
    if call.is_json:
        put_json([finding._asdict() for finding in findings])
    return 0 if all(finding.ok for finding in findings) else 1


def check_machine(settings: Settings, env: Mapping[str, str], cwd: Path) -> Iterator[CheckResult]:
    """Run all checks, none of which change anything or cost money."""
    from csp.panes.tmux_session import check_tmux

    rooms = running_rooms(settings.state_dir)
    version, is_new = ".".join(map(str, sys.version_info[:3])), sys.version_info >= _OLDEST_PYTHON
    advice = "" if is_new else "run bin/csp, which provides one"
    yield CheckResult("python", is_new, f"{version}, 3.11 or newer is needed", advice)
    try:
        yield CheckResult("tmux", True, f"{check_tmux(env)}, 3.2 or newer is needed")
    except CspError as exc:
        yield CheckResult("tmux", False, exc.message, exc.hint)
    yield check_package()
    yield check_drawing(env)
    yield check_state(settings.state_dir)
    yield check_folder("history", settings.history_dir, "choose another with --history")
    yield check_port(settings, rooms)
    if settings.withheld is not None:
        found = settings.withheld
        what = f"{found.path} contains settings that you have not accepted: {'; '.join(found.lines)}"
        yield CheckResult("trust", False, what, "review it, then run: csp trust")
    if not rooms:
        yield CheckResult("rooms", True, "none is running")
    for room in rooms:
        yield check_room(room)
    yield from check_clis(settings, env, cwd)


def check_package() -> CheckResult:
    """Check that no other package has our import name, because their files would overwrite each other."""
    from importlib.metadata import packages_distributions, version

    others = sorted({name for name in packages_distributions().get("csp", ()) if name != _PACKAGE})
    if not others:
        return CheckResult("package", True, f"csp {__version__}")
    found = ", ".join(f"{name} {version(name)}" for name in others)
    advice = f"install CSP into an environment of its own: uv tool install {_PACKAGE}"
    return CheckResult("package", False, f"{found} is installed here too, and its import name is csp", advice)


def check_drawing(env: Mapping[str, str]) -> CheckResult:
    """Check that tmux can draw on this terminal with Unicode."""
    import curses

    from csp.panes.tmux_session import check_terminal

    name = env.get("TERM", "")
    locale = next((env[key] for key in ("LC_ALL", "LC_CTYPE", "LANG") if env.get(key)), "")
    if not is_terminal(sys.stdout):
        return CheckResult("terminal", True, "not a terminal, so it was not checked")
    try:
        check_terminal(env)
    except CspError as exc:
        return CheckResult("terminal", False, exc.message.removeprefix("terminal "), exc.hint)
    if "utf" not in locale.lower():
        advice = "set LANG to one such as C.UTF-8, or tmux shows letters as _"
        return CheckResult("terminal", False, f"locale {locale or 'C'} is not UTF-8", advice)
    cols, rows = shutil.get_terminal_size()
    try:
        curses.setupterm(name or "unknown")
        colours = str(curses.tigetnum("colors"))
    except curses.error:
        colours = "unknown"
    return CheckResult("terminal", True, f"{name}, {cols}x{rows}, {colours} colours, {locale}")


def check_state(path: Path) -> CheckResult:
    """Check that only the user can access the state folder."""
    try:
        mode = path.stat().st_mode & 0o777
    except OSError:
        return check_folder("state folder", path, "set XDG_CACHE_HOME to a folder of yours")
    if mode & 0o077:
        problem = f"{path} is open to others (mode {mode:o})"
        return CheckResult("state folder", False, problem, f"chmod 700 {path}")
    return CheckResult("state folder", True, str(path))


def check_folder(name: str, path: Path, advice: str) -> CheckResult:
    """Check that a folder can be written or created."""
    place = next(folder for folder in (path, *path.parents) if folder.exists())
    if place.is_dir() and os.access(place, os.W_OK | os.X_OK):
        will = "" if place == path else ", will be created by the first gateway"
        return CheckResult(name, True, f"{path}{will}")
    return CheckResult(name, False, f"{path}: {place} cannot be written", advice)


def check_port(settings: Settings, rooms: list[RunningRoom]) -> CheckResult:
    """Check whether the gateway's port is free or used by one of our rooms."""
    where = f"{settings.host}:{settings.port}"
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM
        )[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as exc:
        reason = (exc.strerror or str(exc)).lower()
    else:
        return CheckResult("port", True, f"{where} is free")
    mine = [room.room for room in rooms if room.url.endswith(f":{settings.port}")]
    if mine:
        return CheckResult("port", True, f"{where} is used by room {mine[0]}")
    if settings.is_set("port"):
        return CheckResult("port", False, f"{where}: {reason}", "choose another with CSP_PORT, or unset it")
    return CheckResult("port", True, f"{where}: {reason}; a gateway uses the next free one")


def check_room(room: RunningRoom) -> CheckResult:
    """Check that a room's gateway responds and would be restarted after a crash."""
    from csp.panes.start_gateway import has_lost_supervisor

    name = f"room {room.room}"
    try:
        health = GatewayClient(room.url, room.token).get("/health")
        if has_lost_supervisor(room):
            return CheckResult(name, False, "its supervisor is gone, so it would not be restarted", "csp up")
        return CheckResult(name, True, f"{field(health, 'status', str)} at {room.url}")
    except CspError as exc:
        return CheckResult(name, False, exc.message, exc.hint or f"csp down --room {room.room}, then csp up")


# --- the journal ---------------------------------------------------------------------------------


def _journal(call: VerbCall) -> int:
    from msgspec.structs import asdict

    from csp.journal.scrub import scrub

    path = journal_path(call)
    report = scrub(path)
    damaged = [asdict(damage) for damage in report.damaged]
    found = {"journal": str(path), "checked": report.checked, "problems": report.problems, "damaged": damaged}
    lines = [f"{path}: {report.checked} lines checked, {report.problems or 'no'} problems"]
    for damage in report.damaged:
        lines.append(f"line {damage.line_number}, after #{damage.after_seq}: {damage.problem}")
    call.show(found, lines)
    return 1 if report.problems else 0


def journal_path(call: VerbCall) -> Path:
    """Return the path of the room's journal, whether or not the room is running."""
    settings = call.settings
    name = settings.room if settings.is_set("history_dir") else call.room_name()
    folder = settings.history_dir / name
    if not settings.is_set("history_dir"):
        rooms = {room.room: room.history for room in running_rooms(settings.state_dir)}
        folder = rooms.get(name, folder)
    path = folder / "journal.jsonl"
    if not path.is_file():
        raise NotFound(f"no journal at {str(path)!r}", "specify --room or --history")
    return path
