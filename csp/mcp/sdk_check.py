"""Check for the MCP SDK without loading it; a sidecar asks before its CLI starts."""

import os
import sys

EXTRA = "mcp"


def is_installed() -> bool:
    """Return whether the SDK is installed; loading it would take a second."""
    return any(os.path.isdir(os.path.join(folder, EXTRA, "server", "lowlevel")) for folder in sys.path)


def how_to_install() -> str:
    """Return the command that installs the SDK, from a clone or from a package."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    if os.path.isfile(os.path.join(root, "uv.lock")):
        return f"uv sync --inexact --extra {EXTRA} --project {root}"
    return f"pip install 'csp-groupchat[{EXTRA}]'"
