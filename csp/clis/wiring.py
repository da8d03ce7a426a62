"""Wire one run of a CLI with arguments, environment variables and files that apply only to this run.

The user's own settings are not edited and still apply: our hooks are added to theirs, and our rules to their
instructions. A command that is not an interactive session is not changed.
"""

import os

from csp.clis.adapter import CliRun, Wired
from csp.clis.registry import adapter_names, find_adapter


def wire(kind: str, run: CliRun) -> Wired:
    """Return a CLI's run with our wiring, which writes files to its folder."""
    adapter = find_adapter(kind)
    if kind not in adapter_names() or not adapter.is_session(run.argv):
        return Wired(argv=run.argv, env=run.env)
    os.makedirs(run.spool, 0o700, exist_ok=True)
    return adapter.wire(run)


def unwire(run_dir: "str | os.PathLike[str]", owner: int | None = None) -> None:
    """Clean up the files that a run left behind when it ended or died.

    With `owner`, the process that wired the run, files created by another run since then are left alone.
    """
    for name in adapter_names():
        home = os.path.join(run_dir, f"{name}-home")
        if os.path.isdir(home):
            find_adapter(name).unwire(home, owner)
