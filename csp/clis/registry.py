"""Find the CLIs' folders, which contain their profiles and adapters."""

import os

import csp.clis
from csp.clis.adapter import CliAdapter

PROFILE = "profile.toml"


def profile_paths() -> dict[str, str]:
    """Return the file of each profile included in CSP, by its name."""
    return _paths(PROFILE)


def profile_names() -> list[str]:
    """Return the names of the profiles; those of CLIs with their own adapter come first."""
    return [*cli_names(), *(name for name in profile_paths() if name not in cli_names())]


def adapter_names() -> list[str]:
    """Return the kinds of capture that read a transcript."""
    return list(_paths("__init__.py"))


def cli_names() -> list[str]:
    """Return the CLIs that have both a profile and an adapter."""
    profiles = profile_paths()
    return [name for name in adapter_names() if name in profiles]


def find_adapter(kind: str) -> CliAdapter:
    """Return the adapter for a kind of capture, or one without effect if only the screen is captured."""
    if kind not in adapter_names():
        return CliAdapter()
    adapter: CliAdapter = __import__(f"csp.clis.{kind}", fromlist=("ADAPTER",)).ADAPTER
    return adapter


def _paths(file: str) -> dict[str, str]:
    places = [(place, name) for place in csp.clis.__path__ for name in sorted(os.listdir(place))]
    paths = {name: os.path.join(place, name, file) for place, name in places}
    return {name: path for name, path in paths.items() if os.path.isfile(path)}
