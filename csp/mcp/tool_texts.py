"""Texts for MCP clients, read from sections of files in prompts/."""

from functools import cache
from typing import Final

from csp.prompt_files import read_prompt

_HEAD: Final = "## "


@cache
def sections(name: str) -> dict[str, str]:
    """Return the sections of prompts/NAME by heading; the text before the first one has an empty heading."""
    found: dict[str, str] = {}
    for part in ("\n" + read_prompt(name)).split("\n" + _HEAD):
        head, _, body = part.partition("\n")
        found[head.strip()] = body.strip()
    return found
