"""Track which settings of a repository's csp.toml the user has accepted.

A file in a repository may set limits or name a room. A setting that could run a program, send text to an
address, read a variable or write to a folder is ignored until the user has accepted it. An acceptance
covers one path and the exact content of the settings that need acceptance and of the repository's
programs that these settings name.
"""

import contextlib
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from csp.errors import Broken
from csp.fast_start import process_environment
from csp.fast_start.atomic_files import replace_file

#: Settings that need no acceptance. All others do, so that new settings are safe by default.
HARMLESS: Final = frozenset(
    {
        *("room.name", "room.port", "room.history_cap", "room.orchestrator", "room.strict_cli_check"),
        *("room.layout", "room.worktrees"),
        *("room.injection_timeout_s", "room.offline_after_s", "room.message_ttl_s"),
        *("limits.turn_warn_ms", "limits.turn_timeout_ms", "limits.soft_turns", "limits.soft_tokens"),
        *("limits.window_items", "limits.window_tokens", "limits.turns", "limits.tokens", "limits.minutes"),
        *("limits.on_limit", "limits.on_hard_limit"),
        *("limits.cost_usd", "board.replies", "board.summary_after", "board.summariser", "board.max_kb"),
        *("agent.name", "agent.profile", "agent.role", "agent.worktree"),
    }
)
AGENTS: Final = "agent"
#: Names for several agents, which grant no permissions.
GROUPS: Final = "groups"
#: Saved line-ups, each a list of agent names; the agents' own tables define their permissions.
LINEUPS: Final = "lineups"
#: The roles that define an agent's permissions. Any other word is shown to agents, so it needs acceptance.
ROLES: Final = ("agent", "orchestrator")
#: A text for an agent; files that it mentions are not run.
_PROMPT: Final = "prompt"
#: The section of approval rules, which let an agent run commands.
ALLOW: Final = "allow"


@dataclass(frozen=True, slots=True)
class Power:
    """One setting that needs acceptance, with its value as shown to the user."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Untrusted:
    """The settings of one file that need acceptance; `owner` is set if the file is another user's."""

    path: Path
    powers: tuple[Power, ...]
    digest: str
    owner: int | None = None

    @property
    def lines(self) -> list[str]:
        """The settings, one per line."""
        return [f"{power.key} = {power.value}" for power in self.powers]


#: Asks the user whether to accept the settings; a yes is stored.
Ask = Callable[[Untrusted], bool]


def examine(path: Path, data: Mapping[str, Any]) -> Untrusted | None:
    """Return the settings of a file that need acceptance; None if there are none."""
    path = Path(os.path.realpath(path.parent)) / path.name
    powers = tuple(_powers(data))
    if not powers:
        return None
    try:
        owner: int | None = path.stat().st_uid
    except OSError:
        owner = None
    foreign = owner if owner is not None and is_foreign(owner, os.getuid()) else None
    return Untrusted(path, powers, _digest(path, data, powers), foreign)


def harmless(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a file without the settings that need acceptance.

    The agents are kept either all together or not at all.
    """
    kept: dict[str, Any] = {}
    for section, table in data.items():
        if section == ALLOW:
            continue
        if section == LINEUPS:
            kept[section] = table
        elif section == AGENTS:
            kept |= {} if any(_agent_powers(table)) else {section: table}
        elif section == GROUPS:
            kept[section] = table
        else:
            kept[section] = {name: value for name, value in table.items() if f"{section}.{name}" in HARMLESS}
    return kept


def _powers(data: Mapping[str, Any]) -> Iterator[Power]:
    for section, table in data.items():
        if section == AGENTS:
            yield from _agent_powers(table)
        if section in (AGENTS, LINEUPS):
            continue
        if section == GROUPS:
            continue
        if section == ALLOW:
            for entry in _entries(table):
                yield Power(f"{ALLOW} {entry.get('agent', '')!s}", _shown(entry.get("command", "")))
            continue
        for name, value in table.items():
            if f"{section}.{name}" not in HARMLESS:
                yield Power(f"{section}.{name}", _shown(value))


def _entries(agents: Any) -> list[dict[str, Any]]:
    return [entry for entry in agents if isinstance(entry, dict)] if isinstance(agents, list) else []


def _agent_powers(agents: Any) -> Iterator[Power]:
    for entry in _entries(agents):
        for name, value in entry.items():
            if f"{AGENTS}.{name}" not in HARMLESS or (name == "role" and value not in ROLES):
                yield Power(f"{AGENTS} {entry.get('name', '')!s}: {name}", _shown(value))


def _shown(value: Any) -> str:
    is_words = isinstance(value, list) and all(isinstance(word, str) for word in value)
    text = shlex.join(value) if is_words else str(value)
    # A text of several lines could look like additional settings.
    return text if text.isprintable() else ascii(text)


def is_foreign(owner: int, user: int) -> bool:
    """Return whether a file belongs to another user; root is ignored, because it can write every file."""
    return owner not in (0, user)


# --- what an acceptance covers ---------------------------------------------------------------------


def _digest(path: Path, data: Mapping[str, Any], powers: tuple[Power, ...]) -> str:
    import hashlib
    import json

    places_of = {str(path.parent)} | {
        os.path.join(path.parent, str(entry.get("cwd", "."))) for entry in _entries(data.get(AGENTS))
    }
    words: set[str] = set()
    for power in powers:
        if power.key.endswith(f": {_PROMPT}"):
            continue
        with contextlib.suppress(ValueError):
            words |= {word for word in shlex.split(power.value) if "\0" not in word}
    programs = [
        (file, _file_digest(file))
        for file in sorted({os.path.realpath(os.path.join(dir, word)) for dir in places_of for word in words})
        if file.startswith(f"{path.parent}{os.sep}") and os.path.isfile(file)
    ]
    told = [str(path), [(power.key, power.value) for power in powers], programs]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def _file_digest(file: str) -> str:
    import hashlib

    try:
        with open(file, "rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError:
        return ""


# --- stored acceptances ----------------------------------------------------------------------------


class Accepted:
    """This user's acceptances: one private file per path, stored outside all repositories."""

    def __init__(self, env: Mapping[str, str]) -> None:
        state = process_environment.xdg(env, "XDG_STATE_HOME", ".local/state")
        self._folder = Path(state) / "csp" / "trusted" if state else None

    def has(self, found: Untrusted) -> bool:
        """Return whether exactly these settings were accepted."""
        return bool(self._folder) and self._read(self._file(found.path)).get("sha256") == found.digest

    def add(self, found: Untrusted) -> None:
        """Record that the user has accepted these settings."""
        import json

        if self._folder is None:
            raise Broken("cannot store the acceptance without a home directory", "set HOME")
        file = self._file(found.path)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(file, json.dumps({"path": str(found.path), "sha256": found.digest}).encode())
        except OSError as exc:
            raise Broken(f"cannot write to {self._folder}: {(exc.strerror or '').lower()}") from exc

    def remove(self, path: Path) -> bool:
        """Remove the acceptance of a path; return whether there was one."""
        path = Path(os.path.realpath(path.parent)) / path.name
        if self._folder is None or not self._file(path).exists():
            return False
        self._file(path).unlink(missing_ok=True)
        return True

    def paths(self) -> list[Path]:
        """Return all paths with an acceptance."""
        files = sorted(self._folder.glob("*.json")) if self._folder else []
        return sorted(Path(str(entry["path"])) for entry in map(self._read, files) if "path" in entry)

    def _file(self, path: Path) -> Path:
        import hashlib

        assert self._folder is not None
        return self._folder / f"{hashlib.sha256(os.fsencode(path)).hexdigest()}.json"

    def _read(self, file: Path) -> dict[str, Any]:
        """Return an entry; a file that another user could have written is ignored."""
        import json

        try:
            with open(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as opened:
                state = os.fstat(opened.fileno())
                if state.st_uid != os.getuid() or state.st_mode & 0o022:
                    return {}
                found = json.loads(opened.read())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}
