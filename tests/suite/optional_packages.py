"""The packages of extras that pyproject.toml asks for only on some systems."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement

_PROJECT: Final = Path(__file__).resolve().parent.parent.parent / "pyproject.toml"


def has_word_vectors(environment: Mapping[str, str] | None = None) -> bool:
    """Return whether the extra `search` includes WordLlama here; some systems and Pythons have no wheel."""
    extras = tomllib.loads(_PROJECT.read_text("utf-8"))["project"]["optional-dependencies"]
    marker = next(one.marker for one in map(Requirement, extras["search"]) if one.name == "wordllama")
    return marker is None or marker.evaluate(dict(environment or {}))
