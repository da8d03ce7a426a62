"""End all of this user's rooms and remove the files that CSP has written, except the histories."""

import contextlib
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from csp.cli.arguments import JSON, YES, takes
from csp.cli.output import Progress, confirm, put_json, talk
from csp.cli.up import panes_of, refuse_agents
from csp.cli.verb_call import VerbCall
from csp.config import process_environment
from csp.fast_start.process_environment import xdg
from csp.gateway.lan_certificate import certificate_folder
from csp.project import claims_folder, read_claims
from csp.room_registry import running_rooms

_PACKAGE: Final = "csp-groupchat"
#: The top of the clone that this module runs from, unless the package was installed.
_CLONE: Final = Path(__file__).resolve().parent.parent.parent


@takes(YES, JSON, examples=("csp uninstall",))
def uninstall(call: VerbCall) -> int:
    """End all rooms, remove CSP's files except the histories, and print how to remove the package."""
    from csp.panes.down import EndReport, check_ended, end_room

    refuse_agents(call)
    state_dir, env = call.settings.state_dir, process_environment()
    rooms = known_rooms(state_dir, env)
    question = f"end {', '.join(rooms) or 'no room'} and remove CSP's files, except the histories?"
    if not call.args.yes and not confirm(question):
        talk("nothing was removed")
        return 1
    ended: list[str] = []
    left: list[str] = []
    with Progress() as progress:
        for room, history in rooms.items():
            report: EndReport = end_room(state_dir, room, history, progress.show, panes_of(state_dir, room))
            check_ended(report)
            ended += [f"{what} of room {room}" for what in report.ended]
            left += report.left
    removed = [folder for folder in own_folders(state_dir, env) if remove(folder)]
    kept = [history for history in rooms.values() if history.is_dir()]
    command = how_to_remove_package(sys.prefix)
    if call.is_json:
        paths = {"removed": [*map(str, removed)], "histories": [*map(str, kept)]}
        put_json({"ended": ended, "left": left, **paths, "package": command})
        return 0
    for line in (*(f"ended {what}" for what in ended), *left, *(f"removed {folder}" for folder in removed)):
        talk(line)
    for history in kept:
        talk(f"kept the history in {history}")
    if any(history.is_relative_to(_CLONE) for history in kept) and command.startswith("rm "):
        talk(f"move the histories out of {_CLONE} first if you want to keep them")
    talk(f"remove the package with: {command}")
    return 0


def known_rooms(state_dir: Path, env: Mapping[str, str]) -> dict[str, Path]:
    """Return the history folders by room, for rooms that run, left files, or ran earlier."""
    found = {claim.room: Path(claim.history) / claim.room for claim in read_claims(claims_folder(env))}
    left = [path.name.partition(".")[0] for path in sorted(state_dir.glob("*.lineup"))]
    found |= {room: found.get(room, state_dir / room) for room in left}
    return found | {room.room: room.history for room in running_rooms(state_dir)}


def own_folders(state_dir: Path, env: Mapping[str, str]) -> Iterator[Path]:
    """Yield the folders written only by CSP: its state, cache, trusted files, claims and certificates."""
    yield state_dir
    for name, usual in (("XDG_CACHE_HOME", ".cache"), ("XDG_STATE_HOME", ".local/state")):
        if place := xdg(env, name, usual):
            yield Path(place, "csp")
    if claims := claims_folder(env):
        yield claims
        yield certificate_folder(env)


def remove(folder: Path) -> bool:
    """Remove a folder and its empty parents created by CSP; return whether it existed."""
    if not folder.is_dir():
        return False
    shutil.rmtree(folder, ignore_errors=True)
    if folder.parent.name == "csp":
        with contextlib.suppress(OSError):
            folder.parent.rmdir()
    return True


def how_to_remove_package(prefix: str) -> str:
    """Return the command that removes the package from its environment."""
    parts = Path(prefix).parts
    if "uv" in parts and "tools" in parts:
        return f"uv tool uninstall {_PACKAGE}"
    if "pipx" in parts:
        return f"pipx uninstall {_PACKAGE}"
    if "uv" in parts and any(part.startswith("archive") for part in parts):
        return f"uv cache clean {_PACKAGE} && uv cache prune (uvx keeps it only in uv's cache)"
    if (_CLONE / "uv.lock").is_file():
        # Git makes its objects read-only, so rm without -f would ask about each.
        return f"rm -rf {shlex.quote(str(_CLONE))}"
    return f"pip uninstall {_PACKAGE}"
