"""Load profiles, the descriptions of CLIs, from data files.

The launcher loads one before the child starts, so this module imports little and compiles patterns late.
"""

import operator
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from csp.clis.profile_schema import check_table
from csp.clis.registry import PROFILE, profile_names, profile_paths
from csp.errors import BadInput, NotFound

if TYPE_CHECKING:
    from csp.terminal.screen import ScreenRules

GENERIC: Final = "generic"
_WRAPPERS: Final = frozenset(
    ("bun", "bunx", "env", "exec", "nice", "node", "nohup", "npx", "pnpm", "pnpx", "uvx", "yarn")
)
_VERSION: Final = re.compile(r"(?<!\d)\d++(?:\.\d++)+")
_COMPARISONS: Final = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}
_BOUND: Final = re.compile(r"(>=|<=|==|>|<)(\d+(?:\.\d+)*)\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogAnswer:
    """The keys that answer a dialog: `key` or the number of the requested choice."""

    key: str
    by_number: bool = True

    def keys_for(self, choice: int | None) -> str:
        return str(choice) if choice is not None and self.by_number else self.key


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileKeys:
    """The keys for each action, as the bytes that a terminal would send."""

    submit: str = "\r"
    interrupt: str = ""
    clear: tuple[str, ...] = ()
    """Tried in order until the composer is empty."""
    queue: str = ""
    approve: DialogAnswer | None = None
    deny: DialogAnswer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverySettings:
    """The way to type a message, and the proof that the CLI has accepted it."""

    gap_ms: int = 150
    gap_per_kb_ms: int = 0
    proof: Literal["hook", "transcript", "screen", "none"] = "none"
    proof_s: float = 5.0
    shown_s: float = 2.0
    enter_retry_ms: tuple[int, ...] = ()
    neutralise_at: str = ""
    multiline: bool = True
    typing_quiet_ms: int = 500
    idle_stands_ms: int = 300

    def gap_s(self, size: int) -> float:
        """Return the delay in seconds between a paste of `size` bytes and Enter."""
        return (self.gap_ms + self.gap_per_kb_ms * size / 1024) / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A signal of the CLI's state outside its screen: a window title or an operating system command (OSC)."""

    osc: tuple[int, ...]
    pattern: re.Pattern[str]
    state: Literal["idle", "busy", "dialog"]

    def says(self, number: int, text: str) -> bool:
        return number in self.osc and self.pattern.search(text) is not None


@dataclass(frozen=True, kw_only=True)
class ProfileStart:
    """The part of a profile that is used by launchers."""

    name: str
    commands: tuple[str, ...] = ()
    installs: tuple[str, ...] = ()
    """Where its own installers put it outside the PATH; `~` is the user's home directory."""
    credentials: tuple[str, ...] = ()
    """Variables or files, one of which exists if the user is logged in; their absence proves nothing."""
    versions: str = ""
    version_args: tuple[str, ...] = ("--version",)
    kind: Literal["agent", "shell"] = "agent"
    ready_s: float = 30.0
    keys: ProfileKeys = field(default_factory=ProfileKeys)
    delivery: DeliverySettings = field(default_factory=DeliverySettings)


@dataclass(frozen=True, kw_only=True)
class CaptureTable:
    kind: str = "screen"


@dataclass(frozen=True, kw_only=True)
class ProfileTables(ProfileStart):
    """A profile with the tables of its file."""

    capture: CaptureTable = field(default_factory=CaptureTable)
    signals: tuple[Signal, ...] = ()
    screen: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Profile(ProfileStart):
    """The complete description of one kind of CLI."""

    capture: str = "screen"
    tables: Mapping[str, Any] = field(default_factory=dict, repr=False)
    source: str = ""

    @property
    def is_shell(self) -> bool:
        return self.kind == "shell"

    @cached_property
    def rules(self) -> "ScreenRules":
        from csp.clis.profile_screen import screen_rules

        return screen_rules(self.tables.get("screen", {}), self.source)

    @cached_property
    def signals(self) -> tuple[Signal, ...]:
        from csp.clis.profile_screen import with_patterns

        return with_patterns(tuple[Signal, ...], self.tables.get("signals", ()), "signals", self.source)

    def state_of(self, number: int, text: str) -> str | None:
        """Return "idle", "busy" or "dialog" if this operating system command signals that state."""
        return next((signal.state for signal in self.signals if signal.says(number, text)), None)

    def is_tested_version(self, text: str) -> bool:
        """Return whether the version in the CLI's output is in the range that the profile was tested with."""
        if not self.versions:
            return True
        found = _VERSION.search(text)
        if found is None:
            return False
        version = _numbers(found.group())
        for sign, bound in _bounds(self.versions, self.source):
            size = max(len(version), len(bound))
            left, right = (numbers + (0,) * (size - len(numbers)) for numbers in (version, bound))
            if not _COMPARISONS[sign](left, right):
                return False
        return True


def load_profile(name: str) -> Profile:
    """Load one of the profiles included in CSP."""
    known = profile_paths()
    if name not in known:
        raise NotFound(f"unknown profile {name!r}, expected one of: {', '.join(profile_names())}")
    return _profile(Path(known[name]))


def load_profile_file(path: Path) -> Profile:
    """Load a user's own profile and check all its patterns."""
    return checked(_profile(path))


def load_recorded_profile(path: Path) -> Profile:
    """Load the profile with which a sidecar was started.

    If the file of an included profile is missing, it is found by name, because an update may move the file
    while the sidecar runs.
    """
    name = profile_name(path)
    return load_profile(name) if not path.exists() and name in profile_paths() else load_profile_file(path)


def checked(profile: Profile) -> Profile:
    """Compile every pattern now, so that mistakes are found before anything is started."""
    _ = profile.rules, profile.signals
    return profile


def profile_name(source: Path) -> str:
    """Return the name of the profile in a file; an included profile has the name of its folder."""
    return source.parent.name if source.name == PROFILE else source.stem


def profile_for(*command: str) -> Profile:
    """Choose the profile for a command line such as `claude` or `npx @openai/codex@latest`."""
    names = [name for name in profile_names() if name != GENERIC]
    words, last = command[:2], 1
    if words and _stem(words[0]) in _WRAPPERS:
        # After a wrapper such as npx, one of the next words may name the program.
        words = tuple(word for word in command[1:] if not word.startswith("-") and "=" not in word)[:4]
        last = 3
    for word, verb in zip(words[:last], (*words[1:], ""), strict=False):
        stem = _stem(word)
        for name in sorted(names, key=lambda name: name != stem):
            profile = load_profile(name)
            if any(_is_called(called, word, verb) for called in profile.commands):
                return profile
    return load_profile(GENERIC)


def _is_called(called: str, word: str, verb: str) -> bool:
    """Return whether a word is this program, this package, or this program before its first argument."""
    if "/" in called:
        # A package is recognised by its name, alone or as part of a path.
        return re.sub(r"(?<=.)@[\w.^~-]+\Z", "", word) == called or f"/{called}/" in word
    program, _, wanted = called.partition(" ")
    return _stem(word) == program and wanted in ("", verb)


def _stem(word: str) -> str:
    return word.rpartition("/")[2].removeprefix("-").removesuffix(".exe")


def _profile(path: Path) -> Profile:
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as exc:
        raise BadInput(f"profile {path} cannot be read: {exc}") from exc
    except tomllib.TOMLDecodeError as exc:
        raise BadInput(f"profile {path} is not TOML: {exc}") from exc
    check_table(tables, ProfileTables, "", str(path))
    keys = dict(tables.get("keys", {}))
    answers: dict[str, Any] = {
        act: DialogAnswer(**keys.pop(act)) for act in ("approve", "deny") if act in keys
    }
    top = {name: _frozen(value) for name, value in tables.items() if not isinstance(value, dict | list)}
    lists = ("commands", "installs", "credentials", "version_args")
    top |= {name: tuple(tables[name]) for name in lists if name in tables}
    profile = Profile(
        **top,
        keys=ProfileKeys(**{name: _frozen(value) for name, value in keys.items()}, **answers),
        delivery=DeliverySettings(
            **{name: _frozen(value) for name, value in tables.get("delivery", {}).items()}
        ),
        capture=tables.get("capture", {}).get("kind", "screen"),
        tables={name: tables[name] for name in ("screen", "signals") if name in tables},
        source=str(path),
    )
    _bounds(profile.versions, profile.source)
    return profile


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _bounds(text: str, where: str) -> list[tuple[str, tuple[int, ...]]]:
    bounds = []
    for part in filter(None, text.replace(" ", "").split(",")):
        match = _BOUND.match(part)
        if match is None:
            raise BadInput(f"{where}: versions {text!r} is not a range, expected the form '>=2.1,<2.2'")
        bounds.append((match[1], _numbers(match[2])))
    return bounds


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
