"""State for the next start: the members, and the conversation of each CLI.

The line-up lies in the state folder for as long as the room is up. The conversations lie beside the room's
journal, so that `down` or a restart of the machine may take everything else away.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from csp.clis.profile import profile_name
from csp.clis.registry import find_adapter
from csp.fast_start.atomic_files import replace_file
from csp.panes.members import PaneMember
from csp.sidecar.run_record import SidecarRecord, agents_dir

_HEAD_BYTES: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedConversation:
    """The last conversation of an agent; without a session it cannot be resumed.

    Its token allows leaving the room later, if the room has not noticed its end.
    """

    profile: str
    cwd: str
    token: str
    session: str = ""
    transcript: str = ""


def write_private(path: Path, value: object) -> None:
    """Write JSON for its user alone, whole or not at all."""
    replace_file(path, json.dumps(value, indent=1).encode())


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


# --- the line-up ----------------------------------------------------------------------------------


def lineup_path(state_dir: Path, room: str) -> Path:
    """Return the path of the saved members; not *.json, which are rooms."""
    return state_dir / f"{room}.lineup"


def save_lineup(path: Path, members: Sequence[PaneMember]) -> None:
    """Save the members for a second `up`."""
    write_private(path, [asdict(member) | {"cwd": str(member.cwd)} for member in members])


def load_lineup(path: Path) -> tuple[PaneMember, ...]:
    """Return the saved members, or none."""
    try:
        return tuple(
            PaneMember(**row | {"cwd": Path(row["cwd"]), "command": tuple(row["command"])})
            for row in _read(path) or []
        )
    except (TypeError, KeyError, AttributeError):
        return ()


# --- the conversations ----------------------------------------------------------------------------


def conversations_path(history: Path) -> Path:
    """Return the path of the saved conversations, in the room's history folder."""
    return history / "agents.json"


def load_conversations(path: Path) -> dict[str, SavedConversation]:
    """Return the readable conversations by agent."""
    rows = _read(path)
    found: dict[str, SavedConversation] = {}
    for agent, row in rows.items() if isinstance(rows, dict) else ():
        try:
            found[agent] = SavedConversation(**row)
        except TypeError:
            continue
    return found


def save_conversations(path: Path, new: Mapping[str, SavedConversation]) -> None:
    """Add conversations to the saved ones; a room that was never up has none."""
    known = load_conversations(path)
    merged = known | {agent: _merged(known.get(agent), row) for agent, row in new.items()}
    if merged != known and path.parent.is_dir():
        write_private(path, {agent: asdict(row) for agent, row in merged.items()})


def forget_conversation(path: Path, agent: str) -> None:
    """Remove the saved conversation of an agent."""
    known = load_conversations(path)
    if agent in known:
        known[agent] = replace(known[agent], session="", transcript="")
        write_private(path, {agent: asdict(row) for agent, row in known.items()})


def _merged(old: SavedConversation | None, new: SavedConversation) -> SavedConversation:
    """Return the new one; a CLI that was spoken to before, not yet again, is still in its old session."""
    if old is None or new.session or (old.profile, old.cwd) != (new.profile, new.cwd):
        return new
    return replace(new, session=old.session, transcript=old.transcript)


def conversations_of(state_dir: Path, room: str) -> dict[str, SavedConversation]:
    """Return the conversations of all sidecars with a record, by agent."""
    runs = [SidecarRecord.load(folder) for folder in sorted(agents_dir(state_dir, room).glob("*/"))]
    return {run.agent: _conversation(run) for run in runs if run is not None}


def _conversation(run: SidecarRecord) -> SavedConversation:
    """Return a conversation that can be resumed: one that the CLI has written to disk."""
    paths = [path for path in map(Path, run.transcripts) if path.is_file()] or _unrecorded(run)
    newest = max(paths, key=lambda path: path.stat().st_mtime, default=None)
    profile = profile_name(Path(run.profile))
    session = find_adapter(profile).session_of(newest) if newest else ""
    return SavedConversation(
        profile=profile,
        cwd=run.cwd,
        token=run.token,
        session=session,
        # It may be known by a path through a home of the run, which is removed with the run.
        transcript=str(newest.resolve()) if newest and session else "",
    )


def _unrecorded(run: SidecarRecord) -> list[Path]:
    """Return the transcript of a run whose brain did not record it; none if ambiguous."""
    hint = Path(run.transcript)
    if not run.transcript or hint.is_file():
        return [hint] if run.transcript else []
    # A transcript has the id of its session, or else its directory, in its head.
    mark = (run.session_id or json.dumps(run.cwd)).encode()
    fresh = (path for path in hint.rglob("*.json*") if path.stat().st_mtime >= run.started)
    found = [path for path in fresh if mark in _head(path)]
    return found if len(found) == 1 else []


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD_BYTES)


def resumed(member: PaneMember, cwd: Path, known: Mapping[str, SavedConversation]) -> tuple[str, ...]:
    """Return the command of an agent, resuming its conversation in this directory if it has one."""
    from csp.clis.profile import load_profile, profile_for

    before = known.get(member.agent)
    if member.provider or before is None or before.cwd != str(cwd):
        return member.command
    if not Path(before.transcript).is_file():
        return member.command
    profile = load_profile(member.profile) if member.profile else profile_for(*member.command)
    adapter = find_adapter(profile.capture)
    # A conversation that the person has chosen stands.
    if profile.name != before.profile or adapter.has_chosen_session(member.command):
        return member.command
    return tuple(adapter.resume(member.command, before.session))
