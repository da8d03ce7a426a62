"""A small real repository, with a test that fails until it is mended."""

import subprocess
from pathlib import Path

TEST = "python3 check.py"
WRONG = "def double(x):\n    return x + x + 1\n"
RIGHT = "def double(x):\n    return x + x\n"


def git(dir: Path, *words: str) -> str:
    own = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    done = subprocess.run(["git", *own, *words], cwd=dir, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def make_repository(dir: Path) -> Path:
    """Make a repository whose check fails."""
    dir.mkdir(parents=True, exist_ok=True)
    git(dir, "init", "-q", "-b", "main")
    (dir / "check.py").write_text("from maths import double\nassert double(2) == 4, double(2)\n")
    (dir / "README").write_text("maths\n")
    git(dir, "add", "-A")
    git(dir, "commit", "-q", "-m", "start")
    return dir


def applies_to_a_clone(dir: Path, patch: Path, place: Path) -> None:
    """Apply a patch to a clean clone, run the check there; raise where either fails."""
    git(dir.parent, "clone", "-q", str(dir), str(place))
    git(place, "apply", "--index", str(patch))
    subprocess.run(["python3", "check.py"], cwd=place, check=True, capture_output=True)
