"""Wire one run of a CLI: its arguments, its environment and files of this run alone.

The user's own settings are not edited and still apply: our hooks are added to theirs, our rules to their own
instructions. A command that is not an interactive session is left as it is.
"""

import os

from csp.clis.adapter import CliRun, Wired
from csp.clis.registry import adapter_names, find_adapter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    StrPath = str | os.PathLike[str]


def wire(
    kind: str,
    run_dir: "StrPath",
    argv: "Sequence[str]",
    env: "Mapping[str, str]",
    session_id: str,
    rules_text: str = "",
    *,
    cwd: str | None = None,
    worktrees: str = "",
    server: "Sequence[str]" = (),
    is_hook_trusted: bool = False,
    has_peers: bool = False,
) -> Wired:
    """Return the run of a CLI with our wiring; `run_dir` must be private. `CliRun` explains the rest."""
    run = CliRun(
        folder=os.fspath(run_dir),
        argv=list(argv),
        env=dict(env),
        session_id=session_id,
        rules=rules_text.strip(),
        cwd=cwd or os.getcwd(),
        worktrees=worktrees,
        server=list(server),
        is_hook_trusted=is_hook_trusted,
        has_peers=has_peers,
    )
    adapter = find_adapter(kind)
    if not adapter.is_session(run.argv):
        return Wired(argv=run.argv, env=run.env)
    os.makedirs(run.spool, 0o700, exist_ok=True)
    return adapter.wire(run)


def unwire(run_dir: "StrPath", owner: int | None = None) -> None:
    """Put away what a run has left, after it has ended or died.

    With an `owner`, the process that wired the run, what another run has wired since is left alone.
    """
    for name in adapter_names():
        home = os.path.join(run_dir, f"{name}-home")
        if os.path.isdir(home):
            find_adapter(name).unwire(home, owner)
