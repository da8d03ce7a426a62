"""Find a directory's project and the name of its room.

A project is a git repository, or a directory without one. All worktrees of a repository are one project: git
keeps their shared data in one folder, and the path of that folder is the project's identity. One small file
per room, the claim, records the project of the room, so that two projects with the same name never share a
room. Only commands that start a room make a claim.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from csp.errors import Broken
from csp.fast_start.atomic_files import read_plain, replace_file
from csp.fast_start.process_environment import xdg
from csp.fast_start.room_files import is_name, make_private_dir

_OTHERS: Final = re.compile(r"[^a-z0-9]+")
_GIT_FILE: Final = "gitdir: "
#: A name has at most 32 characters, five of which are reserved for a suffix.
_MAX_BASE: Final = 27
_SUFFIX: Final = 4
_UNNAMED: Final = "room"
_MAX_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A directory that has a room; `identity` is equal for all worktrees of a repository."""

    root: Path
    identity: str

    @property
    def home(self) -> Path:
        """The directory that the room is named after; for a repository, its first work tree."""
        return _home_of(self.identity) or self.root

    def owns(self, identity: str) -> bool:
        """Return whether a room is the project's; a directory that becomes a repository keeps its room."""
        return identity in (self.identity, str(self.root), str(self.home))


def _home_of(identity: str) -> Path | None:
    """Return the first work tree of a repository; None if the repository does not record it."""
    path = Path(identity)
    return path.parent if path.name == ".git" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A room that was started for a project; `history` is the folder that contains the room's folder.

    `is_named` means that a person chose the name. Such a room is an additional one in its project, not the
    one that is found through the directory.
    """

    room: str
    identity: str
    dir: str
    history: str
    created: float
    is_named: bool = False

    @property
    def home(self) -> Path | None:
        """The directory where the room is opened; None if it no longer exists."""
        folders = (Path(self.dir), _home_of(self.identity), Path(self.identity))
        return next((folder for folder in folders if folder is not None and folder.is_dir()), None)


def project_of(cwd: Path, claimed: Collection[str] = ()) -> Project:
    """Return the project of a directory; `claimed` are the identities that have a room.

    Without git, a directory belongs to the nearest parent directory with a room, or else is its own project.
    """
    here = Path(os.path.realpath(cwd))
    above = (here, *here.parents)
    for folder in above:
        if identity := _git_identity(folder):
            return Project(root=folder, identity=identity)
    root = next((folder for folder in above if str(folder) in claimed), here)
    return Project(root=root, identity=str(root))


def _git_identity(folder: Path) -> str:
    """Return the real path of the folder that all worktrees share; empty if `folder` is not a work tree."""
    dot_git = folder / ".git"
    if dot_git.is_dir():
        return os.path.realpath(dot_git) if (dot_git / "HEAD").exists() else ""
    line = _first_line(dot_git)
    if not line.startswith(_GIT_FILE):
        return ""
    own = folder / line.removeprefix(_GIT_FILE)
    shared = _first_line(own / "commondir")
    return os.path.realpath(own / shared if shared else own)


def _first_line(path: Path) -> str:
    try:
        return os.fsdecode(read_plain(path, _MAX_BYTES).partition(b"\n")[0]).rstrip("\r")
    except OSError:
        return ""


def room_name(project: Project, claims: Collection[Claim]) -> str:
    """Return the name of a project's room: the claimed name, or else a new one."""
    for claim in claims:
        if project.owns(claim.identity) and not claim.is_named:
            return claim.room
    return _new_name(project, {claim.room for claim in claims})


def _new_name(project: Project, taken: Collection[str]) -> str:
    """Return the directory's name, made valid and unique with a short suffix if needed."""
    folder = project.home.name.lower()
    if is_name(folder) and folder not in taken:
        return folder
    base = _OTHERS.sub("-", folder).strip("-")[:_MAX_BASE].rstrip("-") or _UNNAMED
    digest = hashlib.sha256(os.fsencode(project.identity)).hexdigest()
    suffixes = (digest[at : at + _SUFFIX] for at in range(0, len(digest), _SUFFIX))
    return next(name for suffix in suffixes if (name := f"{base}-{suffix}") not in taken)


# --- the claims ----------------------------------------------------------------------------------


def claims_folder(env: Mapping[str, str]) -> Path | None:
    """Return the folder of the claims; None without a home directory."""
    data = xdg(env, "XDG_DATA_HOME", ".local/share")
    return Path(data, "csp", "rooms") if data else None


def read_claims(folder: Path | None) -> tuple[Claim, ...]:
    """Return all claims, sorted by name; unreadable files are skipped."""
    found = []
    for path in sorted(folder.glob("*.json"), key=lambda path: path.stem) if folder else ():
        with contextlib.suppress(OSError, ValueError, TypeError):
            claim = Claim(**json.loads(path.read_bytes()))
            if claim.room == path.stem and is_name(claim.room):
                found.append(claim)
    return tuple(found)


def claim_room(folder: Path, project: Project, history: Path, now: float, *, named: str = "") -> Claim:
    """Write and return the claim of a room before the room starts.

    `named` is a name that a person chose; it replaces an earlier claim of another project.
    """
    with _locked(folder):
        claims = read_claims(folder)
        room = named or room_name(project, claims)
        before = next((claim for claim in claims if claim.room == room), None)
        is_same = before is not None and project.owns(before.identity)
        is_own = (is_same and before is not None and not before.is_named) or room == room_name(
            project, [claim for claim in claims if claim != before]
        )
        claim = Claim(
            room=room,
            identity=project.identity,
            dir=str(project.root),
            history=str(history),
            created=before.created if before and is_same else now,
            # The directory's own room remains its own even if a person names it explicitly.
            is_named=bool(named) and not is_own,
        )
        if claim != before:
            replace_file(str(folder / f"{room}.json"), json.dumps(asdict(claim)).encode())
    return claim


def drop_claim(folder: Path, room: str) -> None:
    """Forget a room whose history was removed."""
    path = folder / f"{room}.json"
    if path.exists():
        with _locked(folder):
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    try:
        make_private_dir(folder)
        fd = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        raise Broken(f"cannot write to {str(folder)!r}: {(exc.strerror or '').lower()}") from exc
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
