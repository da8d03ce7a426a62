"""Show the effects of a repository's csp.toml, and remember that the user has accepted it."""

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from csp.cli.arguments import JSON, switch, takes, value
from csp.cli.output import is_terminal, talk
from csp.cli.verb_call import VerbCall
from csp.config import process_environment, read_project_file
from csp.errors import BadInput, NotFound, Refused
from csp.trust import Accepted, Untrusted, examine

_NAME: Final = "csp.toml"
#: Verbs that start programs or open an address from the file, so they do not run without its acceptance.
_NEEDED_BY: Final = ("up", "add", "gateway")
#: Verbs that read the history from the file's path, so they do not ignore the file silently.
_TOLD: Final = ("down", "replay", "doctor")


@takes(
    value("path", "PATH", "a csp.toml or its directory; default: the current one", nargs="?"),
    switch("--list", "list the accepted files"),
    switch("--remove", "revoke the acceptance"),
    JSON,
    examples=("csp trust ~/src/project", "csp trust --list"),
)
def trust(call: VerbCall) -> int:
    """Accept the settings in a csp.toml, list accepted files, or revoke an acceptance."""
    if call.settings.agent:
        raise Refused(f"this pane is agent {call.settings.agent!r}", "only a person can accept this")
    accepted = Accepted(process_environment())
    if call.args.list:
        rows = [(path, _is_current(path, accepted)) for path in accepted.paths()]
        return call.show(
            [{"path": str(path), "current": current} for path, current in rows],
            (f"{path}" if current else f"{path} (changed since)" for path, current in rows),
        )
    path = call.cwd / Path(call.args.path or ".").expanduser()
    path = Path(os.path.abspath(path / _NAME if path.is_dir() else path))
    if not call.args.path and call.settings.project and not path.exists():
        # The file that applies to a subdirectory of a project.
        path = call.settings.project.root / _NAME
    if path.name != _NAME:
        raise BadInput(f"expected a {_NAME} or its directory, got {call.args.path!r}")
    if call.args.remove:
        was_there = accepted.remove(path)
        if not was_there and not call.is_json:
            raise NotFound(f"{path} was not accepted", "see: csp trust --list")
        return call.tell({"path": str(path), "removed": was_there}, f"{path} is no longer accepted")
    data = read_project_file(path)
    if data is None:
        raise NotFound(f"there is no {str(path)!r}", "name a directory with a csp.toml, or the file")
    found = examine(path, data)
    if found is not None:
        accepted.add(found)
    powers = [{"key": power.key, "value": power.value} for power in found.powers] if found else []
    return call.show(
        {"path": str(path), "accepted": True, "settings": powers},
        (f"  {line}" for line in (found.lines if found else ())),
        f"accepted {found.path}" if found else f"nothing in {path} needs to be accepted",
    )


def _is_current(path: Path, accepted: Accepted) -> bool:
    try:
        data = read_project_file(path)
    except BadInput:
        return False
    found = examine(path, data) if data is not None else None
    return found is not None and accepted.has(found)


# --- for other verbs -------------------------------------------------------------------------------


def may_use(found: Untrusted, args: argparse.Namespace, env: Mapping[str, str]) -> bool:
    """Return whether a command may use an untrusted file; raise if the command cannot run without it."""
    if args.verb not in _NEEDED_BY or getattr(args, "provider", None):
        if args.verb in _TOLD:
            talk(f"csp: {_problem(found)}, so they are ignored (see: csp trust)")
        return False
    if env.get("CSP_AGENT"):
        raise Refused(_problem(found), "only a person can accept them: csp trust")
    if not args.trust and not _agreed(found):
        raise Refused(_problem(found), "nothing was started")
    Accepted(env).add(found)
    return True


def _agreed(found: Untrusted) -> bool:
    """Show the settings and ask the user; without a terminal, name the command that accepts them."""
    if not is_terminal(sys.stdin) or not is_terminal(sys.stderr):
        import shlex

        first = found.lines[0] if len(found.lines[0]) <= 100 else f"{found.lines[0][:100]}..."
        more = f", {len(found.lines) - 1} more" if len(found.lines) > 1 else ""
        hint = f"review them, then accept them with: csp trust {shlex.quote(str(found.path.parent))}"
        raise Refused(f"{_problem(found)}: {first}{more}", hint)
    talk(f"{found.path} contains settings that you have not accepted yet:")
    for line in found.lines:
        talk(f"  {line}")
    if found.owner is not None:
        talk(f"The file belongs to another user (uid {found.owner}).")
    talk("Programs run with all your permissions. Accept the file until it changes? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _problem(found: Untrusted) -> str:
    return f"{found.path} has settings that you have not accepted"
