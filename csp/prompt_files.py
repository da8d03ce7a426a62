"""Read the files of prompts/: the texts for agents and MCP clients.

A sidecar reads them before its CLI starts, so this module's imports are minimal.
"""

import os

from csp.errors import Broken

_PACKAGE = os.path.dirname(os.path.realpath(__file__))
#: A wheel contains the prompts inside the package, and a clone contains them next to it.
_FOLDERS = (os.path.join(_PACKAGE, "prompts"), os.path.join(os.path.dirname(_PACKAGE), "prompts"))


def read_prompt(name: str) -> str:
    """Return the text of one file, such as `rules.md`."""
    for folder in _FOLDERS:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as file:
                return file.read()
    raise Broken(f"prompts/{name} is missing, expected it in one of: {', '.join(_FOLDERS)}")


def load_prompts() -> dict[str, str]:
    """Return the text of every prompt, by file name without `.md`."""
    for folder in _FOLDERS:
        if os.path.isdir(folder):
            names = sorted(name for name in os.listdir(folder) if name.endswith(".md"))
            return {name.removesuffix(".md"): read_prompt(name) for name in names}
    raise Broken(f"the prompts are missing, expected them in one of: {', '.join(_FOLDERS)}")
