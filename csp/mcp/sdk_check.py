"""Tell whether the SDK is here; a sidecar asks before its CLI starts, so nothing is loaded for it."""

import os
import sys

EXTRA = "mcp"


def is_installed() -> bool:
    """Tell whether `csp mcp` can run; to load the SDK would take a second."""
    return any(os.path.isdir(os.path.join(folder, EXTRA, "server", "lowlevel")) for folder in sys.path)


def how_to_install() -> str:
    """Return the command that installs the SDK, from a clone or from a package."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    if os.path.isfile(os.path.join(root, "uv.lock")):
        return f"uv sync --inexact --extra {EXTRA} --project {root}"
    return f"pip install 'csp-groupchat[{EXTRA}]'"
