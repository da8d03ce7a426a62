"""The rules of the room, as a text that a CLI gets when it starts."""

import os

from csp.errors import Broken

_HERE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
#: In a wheel the prompts lie inside the package, in a clone beside it.
_FOLDERS = (os.path.join(_HERE, "prompts"), os.path.join(os.path.dirname(_HERE), "prompts"))


def rules_text(agent: str, role: str = "agent", *, has_tools: bool = False) -> str:
    """Return the rules for one participant; those of the tools only for one who has them."""
    names = ["rules.md", *(["rules_tools.md"] if has_tools else [])]
    names += ["orchestrator.md"] if role == "orchestrator" else []
    return "\n".join([read_prompt(name) for name in names]).replace("{agent}", agent)


def read_prompt(name: str) -> str:
    """Return the text of a file in prompts/."""
    for folder in _FOLDERS:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as file:
                return file.read()
    raise Broken(f"prompts/{name} is missing, expected it in one of: {', '.join(_FOLDERS)}")
