"""The rules of the room, as the text that a CLI gets with its start."""

from pathlib import Path
from typing import Final

from csp.errors import Broken

_HERE: Final = Path(__file__).resolve().parent.parent
#: In a wheel the prompts lie inside the package, in a clone beside it.
_FOLDERS: Final = (_HERE / "prompts", _HERE.parent / "prompts")


def rules_text(agent: str) -> str:
    """Return the rules for one participant."""
    for folder in _FOLDERS:
        path = folder / "rules.md"
        if path.is_file():
            return path.read_text("utf-8").replace("{agent}", agent)
    raise Broken(f"prompts/rules.md is missing, expected it in one of: {', '.join(map(str, _FOLDERS))}")
