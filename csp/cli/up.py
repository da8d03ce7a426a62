"""Open the group chat in tmux, add to it, end it."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from csp.cli.output import Progress, confirm, is_terminal, put, put_json, talk
from csp.cli.verb_call import VerbCall
from csp.config import process_environment
from csp.errors import BadInput, CspError, Refused
from csp.fast_start.child_environment import USER, child_environment
from csp.panes.lock import locked
from csp.panes.members import MemberRequest

if TYPE_CHECKING:
    from csp.panes.tmux_session import TmuxSession

#: The room of those who name none.
DEFAULT: Final = "default"


def up(call: VerbCall) -> int:
    """Open the room or join the running one; return or attach when all agents have joined."""
    from csp.panes.tmux_session import check_terminal, check_tmux
    from csp.panes.up import OpenRoom, plan

    check_place(call)
    env = process_environment()
    wish = _wish(call)
    check_tmux(env)
    if call.args.dry_run:
        return _show_plan(call, plan(call.settings, wish, env, _terminal_size()))
    attaches = not call.args.detach and not call.is_json
    if attaches and not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        attaches = False
    if attaches:
        check_terminal(env)
    with at_work(call.settings.state_dir, call.settings.room) as progress:
        opening = OpenRoom(
            call.settings, wish, call.cwd, env, progress.show, lambda line: _say(progress, line)
        )
        outcomes = opening.open(_terminal_size() if attaches else None)
    argv = opening.panes.attach_argv(env)
    return _report(call, opening.summary(), [outcome._asdict() for outcome in outcomes], argv, attaches)


def down(call: VerbCall) -> int:
    """End the room's panes with its gateway; the history stays unless it is to be purged."""
    from csp.panes.down import check_ended, end_room, purge
    from csp.panes.start_gateway import running_room

    settings, env = call.settings, process_environment()
    _refuse_agents(call)
    room = _room_name(call)
    running = running_room(settings.state_dir, room)
    history = running.history if running else settings.history_dir / room
    if (
        call.args.purge
        and not call.args.yes
        and not confirm(f"permanently remove the history of room {room} in {history}?")
    ):
        talk("nothing was ended")
        return 1
    with at_work(settings.state_dir, room) as progress:
        panes = panes_of(settings.state_dir, room)
        report = end_room(settings.state_dir, room, history, progress.show, panes)
        kept = purge(history, env) if call.args.purge else []
    if call.is_json:
        put_json(
            {
                "room": room,
                "ended": report.ended,
                "left": report.left,
                "purged": bool(call.args.purge),
                "kept": [str(path) for path in kept],
            }
        )
    else:
        for line in report.left:
            talk(f"csp: {line}")
        talk(f"ended {', '.join(report.ended)}" if report.ended else f"nothing of room {room} was running")
        for path in kept:
            talk(f"csp: work in {path} is not committed, so it stays")
        if call.args.purge:
            talk(f"removed the history of room {room}")
    check_ended(report)
    return 0


# --- what was asked for ---------------------------------------------------------------------------


def _wish(call: VerbCall) -> MemberRequest:
    args = call.args
    only = tuple(dict.fromkeys(name.strip() for name in (args.agents or "").split(",") if name.strip()))
    if args.agents is not None and not only:
        raise BadInput("--agents: expected names with commas between, got nothing")
    return MemberRequest(
        dir=call.directory(args.dir), demo=args.demo, orchestrator=args.orchestrator, only=only
    )


def check_place(call: VerbCall) -> None:
    _refuse_agents(call)
    if call.settings.gateway_url:
        raise BadInput("csp up runs a gateway of its own", "unset CSP_GATEWAY_URL first")


def _refuse_agents(call: VerbCall) -> None:
    if call.settings.agent:
        raise Refused(f"this pane is agent {call.settings.agent!r}", "use another terminal for this")


def _room_name(call: VerbCall) -> str:
    """Return the name of the room, whether its gateway runs or not."""
    if call.settings.is_set("room"):
        return call.settings.room
    try:
        return call.address.room or call.settings.room
    except Refused:
        raise
    except CspError:
        return call.settings.room


def _terminal_size() -> tuple[int, int] | None:
    try:
        size = os.get_terminal_size()
    except OSError:
        return None
    return (size.columns, size.lines) if size.columns and size.lines else None


# --- what is said ---------------------------------------------------------------------------------


@contextlib.contextmanager
def at_work(state_dir: Path, room: str) -> Iterator[Progress]:
    """Hold the room's lock and show progress."""
    progress = Progress()
    try:
        with locked(state_dir, room, progress.show):
            yield progress
    except KeyboardInterrupt:
        _say(progress, _what_is_left(state_dir, room))
        raise
    finally:
        progress.clear()


def _what_is_left(state_dir: Path, room: str) -> str:
    """Return what still runs after an interrupt, and how to go on or end it."""
    from csp.panes.start_gateway import running_room

    running, panes = running_room(state_dir, room), panes_of(state_dir, room)
    left = [f"the gateway at {running.url}"] if running else []
    left += [f"tmux session {panes.name}"] if panes and panes.id else []
    which = "" if room == DEFAULT else f" --room {room}"
    if not left:
        return f"interrupted; nothing of room {room} is running"
    todo = f"go on with: csp up{which}; end it with: csp down{which}"
    return f"interrupted; still running: {', '.join(left)} ({todo})"


def panes_of(state_dir: Path, room: str) -> "TmuxSession | None":
    """Return the panes of a room, or nothing on a machine without tmux."""
    from libtmux.exc import TmuxCommandNotFound

    from csp.panes.tmux_session import TmuxSession

    try:
        return TmuxSession(room, state_dir)
    except (CspError, TmuxCommandNotFound):
        return None


def _say(progress: Progress, line: str) -> None:
    progress.clear()
    talk(f"csp: {line}")


def _show_plan(call: VerbCall, found: dict[str, Any]) -> int:
    if call.is_json:
        put_json(found)
        return 0
    for note in found["notes"]:
        talk(f"csp: {note}")
    put(f"room {found['room']}, history in {found['history']}")
    put(f"tmux session {found['session']}")
    for number, window in enumerate(found["windows"], 1):
        put(f"  window {number}: {', '.join(window)}")
    for row in found["agents"]:
        where = f"in {'a git worktree of its own' if row['worktree'] else row['cwd']}"
        if row["provider"]:
            where = "a model behind an API"
        role = "" if row["role"] == "agent" else f", {row['role']}"
        put(f"  {row['id']}{role}: {row['command']} ({where})")
    put("nothing was started")
    return 0


def _report(
    call: VerbCall, summary: dict[str, Any], outcomes: list[dict[str, Any]], argv: list[str], attaches: bool
) -> int:
    """Report the outcome, then attach if wanted."""
    up_count = sum(not outcome["problem"] for outcome in outcomes)
    if call.is_json:
        put_json({**summary, "agents": outcomes})
        return 0 if up_count == len(outcomes) else 1
    for outcome in outcomes:
        if outcome["problem"]:
            talk(f"csp: {outcome['problem']}")
    names = ", ".join(outcome["agent"] for outcome in outcomes if not outcome["problem"])
    talk(f"room {summary['room']} is up with {names or 'nobody'}")
    if attaches:
        sys.stderr.flush()
        os.execvpe(argv[0], argv, child_environment(USER, process_environment()))
    talk(f"open it with: tmux attach -t {summary['session']}")
    return 0 if up_count or not outcomes else 1


__all__ = ["at_work", "check_place", "down", "panes_of", "up"]
