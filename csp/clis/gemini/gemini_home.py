"""Build a separate home directory of links to the user's home for one run of Gemini CLI.

Gemini reads hooks only from its settings file. The overlay's `.gemini` contains a settings file merged for
the run. Every other entry is a link, so the CLI stores its files in the user's home. A file that the CLI
writes by renaming replaces its link; `bring_home` moves such files to the user's home after the run.
"""

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from csp.fast_start.atomic_files import replace_file

SETTINGS: Final = "settings.json"
_WRITTEN: Final = "settings.written.json"
_USER: Final = "user-home"
_OWNER: Final = "owner"
#: The entries that Gemini creates in an empty home, which must be created in the user's home.
_FOLDERS: Final = ("tmp", "history")
_FILES: Final = (
    *("projects.json", "state.json", "trustedFolders.json", "installation_id", "google_accounts.json"),
    *("oauth_creds.json", "GEMINI.md", "mcp-oauth-tokens.json", "keybindings.json"),
)


def build(overlay: Path, user_home: Path, settings: Mapping[str, Any], extra: Mapping[str, str]) -> None:
    """Build a home in `overlay` whose `.gemini` has these settings, the extra files and links to the rest."""
    theirs, ours = user_home / ".gemini", overlay / ".gemini"
    ours.mkdir(parents=True, mode=0o700, exist_ok=True)
    for name in _FOLDERS:
        (theirs / name).mkdir(parents=True, exist_ok=True)
    names = {entry.name for entry in theirs.iterdir()} | set(_FILES)
    for name in sorted(names - {SETTINGS} - extra.keys()):
        with contextlib.suppress(FileExistsError):
            (ours / name).symlink_to(theirs / name)
    written = json.dumps(settings, ensure_ascii=False, indent=2)
    for path, text in ((ours / SETTINGS, written), (overlay / _WRITTEN, written)):
        _write(path, text)
    for name, text in extra.items():
        _write(ours / name, text)
    _write(overlay / _USER, str(user_home))
    _write(overlay / "extra", json.dumps(sorted(extra)))
    _write(overlay / _OWNER, str(os.getpid()))


def bring_home(overlay: Path, owner: int | None = None) -> None:
    """Move the files that the CLI has left in the overlay to the user's home, then remove the overlay.

    If `owner`, the process that built it, is given, the overlay of another process stays: the next
    run may have started in the same place.
    """
    with open(overlay.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = 0
        with contextlib.suppress(OSError, ValueError):
            found = int((overlay / _OWNER).read_text("utf-8"))
        if not overlay.is_dir() or owner not in (None, found):
            return
        try:
            theirs = Path((overlay / _USER).read_text("utf-8")) / ".gemini"
            extra = set(json.loads((overlay / "extra").read_text("utf-8")))
        except (OSError, ValueError):
            shutil.rmtree(overlay, ignore_errors=True)
            return
        for entry in sorted((overlay / ".gemini").iterdir()):
            if entry.is_symlink() or entry.name in extra | {SETTINGS} or ".tmp" in entry.name:
                continue
            target = theirs / entry.name
            with contextlib.suppress(OSError):
                if entry.is_dir():
                    if not target.exists():
                        shutil.move(entry, target)
                elif not target.exists() or target.stat().st_mtime_ns < entry.stat().st_mtime_ns:
                    replace_file(target, entry.read_bytes(), mode=_mode(target, entry.stat().st_mode & 0o777))
        _merge_back(overlay, theirs / SETTINGS)
        shutil.rmtree(overlay, ignore_errors=True)


def read_settings(path: Path) -> dict[str, Any] | None:
    """Return the settings in a file, ignoring comments; {} if there is no file, None if it is unreadable."""
    try:
        found = json.loads(without_comments(path.read_text("utf-8")) or "{}")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def without_comments(text: str) -> str:
    """Blank out // and /* */ comments in a JSON text, but not in its strings."""
    out, at, end = [], 0, len(text)
    while at < end:
        if text[at] == '"':
            stop = at + 1
            while stop < end and text[stop] != '"':
                stop += 2 if text[stop] == "\\" else 1
            out.append(text[at : stop + 1])
            at = stop + 1
        elif text.startswith("//", at):
            stop = text.find("\n", at)
            at = end if stop < 0 else stop
        elif text.startswith("/*", at):
            stop = text.find("*/", at + 2)
            at = end if stop < 0 else stop + 2
        else:
            out.append(text[at])
            at += 1
    return "".join(out).strip()


def _merge_back(overlay: Path, path: Path) -> None:
    """Copy only the changes that the person made in the CLI's settings during the run."""
    was, now = read_settings(overlay / _WRITTEN), read_settings(overlay / ".gemini" / SETTINGS)
    if was is None or now is None or was == now:
        return
    try:
        text = path.read_text("utf-8") if path.exists() else "{}"
        theirs = json.loads(text)
    except (OSError, ValueError):
        # A file with comments was written by hand, so it is not changed.
        return
    if isinstance(theirs, dict):
        text = json.dumps(_changed(was, now, theirs), ensure_ascii=False, indent=2) + "\n"
        replace_file(path, text.encode(), mode=_mode(path))


def _changed(was: dict[str, Any], now: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    merged = dict(theirs)
    for key in was.keys() | now.keys():
        old, new = was.get(key), now.get(key)
        if old == new:
            continue
        if key not in now:
            merged.pop(key, None)
        elif isinstance(old, dict) and isinstance(new, dict):
            below = theirs.get(key)
            merged[key] = _changed(old, new, below if isinstance(below, dict) else {})
        else:
            merged[key] = new
    return merged


def _write(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")
    path.chmod(0o600)


def _mode(path: Path, new: int = 0o600) -> int:
    """Return the permissions of an existing file, or `new` if there is none."""
    return path.stat().st_mode & 0o777 if path.exists() else new
