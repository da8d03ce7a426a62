"""The conversation of each CLI and the form of the windows, for the next start.

They are stored with the journal of the room, so they survive `down` and a restart of the machine.
"""

import contextlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from csp.clis.profile import profile_name
from csp.clis.registry import find_adapter
from csp.fast_start.atomic_files import replace_file
from csp.panes.members import PaneMember
from csp.sidecar.run_record import SidecarRecord
from csp.terminal.pane_layout import LayoutForm, LayoutName

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


def save_form(history: Path, form: LayoutForm) -> None:
    """Keep the form of the windows for the next start."""
    with contextlib.suppress(OSError):
        replace_file(history / "layout.json", json.dumps([form.name, form.share]).encode(), is_durable=False)


def load_form(history: Path) -> LayoutForm | None:
    """Return the form that the windows had last; None if there is none that can be read."""
    try:
        name, share = json.loads((history / "layout.json").read_bytes())
        return LayoutForm(LayoutName(name), min(1000, max(50, int(share))))
    except (OSError, ValueError, TypeError):
        return None


def conversations_path(history: Path) -> Path:
    """Return the path of the saved conversations, in the room's history folder."""
    return history / "agents.json"


def load_conversations(path: Path) -> dict[str, SavedConversation]:
    """Return the readable conversations by agent."""
    try:
        rows = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        rows = {}
    found: dict[str, SavedConversation] = {}
    for agent, row in rows.items() if isinstance(rows, dict) else ():
        with contextlib.suppress(TypeError):
            found[agent] = SavedConversation(**row)
    return found


def _save(path: Path, conversations: Mapping[str, SavedConversation]) -> None:
    rows = {agent: asdict(row) for agent, row in conversations.items()}
    replace_file(path, json.dumps(rows, indent=1).encode())


def save_conversations(path: Path, new: Mapping[str, SavedConversation]) -> None:
    """Add conversations to the saved ones; a room that was never up has none."""
    known = load_conversations(path)
    merged = {**known, **new}
    for agent, old in known.items():
        row = merged[agent]
        if not row.session and (old.profile, old.cwd) == (row.profile, row.cwd):
            # A CLI that was spoken to before, not yet again, is still in its old session.
            merged[agent] = replace(row, session=old.session, transcript=old.transcript)
    if merged != known and path.parent.is_dir():
        _save(path, merged)


def forget_conversation(path: Path, agent: str) -> None:
    """Remove the saved conversation of an agent."""
    known = load_conversations(path)
    if agent in known:
        _save(path, known | {agent: replace(known[agent], session="", transcript="")})


def conversations_of(runs: Iterable[SidecarRecord]) -> dict[str, SavedConversation]:
    """Return the conversations of sidecars by agent: those that the CLI has written to disk."""
    found = {}
    for run in runs:
        paths = [path for path in map(Path, run.transcripts) if path.is_file()] or _unrecorded(run)
        newest = max(paths, key=lambda path: path.stat().st_mtime, default=None)
        profile = profile_name(Path(run.profile))
        session = find_adapter(profile).session_of(newest) if newest else ""
        found[run.agent] = SavedConversation(
            profile=profile,
            cwd=run.cwd,
            token=run.token,
            session=session,
            # It may be known by a path through a home of the run, which is removed with the run.
            transcript=str(newest.resolve()) if newest and session else "",
        )
    return found


def _unrecorded(run: SidecarRecord) -> list[Path]:
    """Return the transcript of a run whose brain did not record it; none if ambiguous."""
    hint = Path(run.transcript)
    if not run.transcript or hint.is_file():
        return [hint] if run.transcript else []
    # A transcript has the id of its session, or else its directory, in its head.
    mark = (run.session_id or json.dumps(run.cwd)).encode()
    fresh = (path for path in hint.rglob("*.json*") if path.stat().st_mtime >= run.started)
    found = []
    for path in fresh:
        with path.open("rb") as file:
            if mark in file.read(_HEAD_BYTES):
                found.append(path)
    return found if len(found) == 1 else []


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
