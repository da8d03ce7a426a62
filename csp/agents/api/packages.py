"""Check whether the SDK of a provider is installed, and say how to install it."""

import importlib.util
from pathlib import Path
from typing import Final

from csp.errors import Refused
from csp.model_providers import Provider

_ROOT: Final = Path(__file__).resolve().parents[3]


def is_installed(provider: Provider) -> bool:
    """Return whether the SDK of a provider is installed; loading it would take seconds."""
    return importlib.util.find_spec(provider.extra) is not None


def how_to_install(provider: Provider) -> str:
    """Return the command that installs what a provider needs, from a clone or from a package."""
    if (_ROOT / "uv.lock").is_file():
        return f"uv sync --inexact --extra {provider.extra} --project {_ROOT}"
    return f"pip install 'csp-groupchat[{provider.extra}]'"


def check_extra(provider: Provider) -> None:
    """Raise Refused if the SDK of a provider is not installed."""
    if not is_installed(provider):
        raise Refused(
            f"the package {provider.extra!r} is not installed", f"install it: {how_to_install(provider)}"
        )
