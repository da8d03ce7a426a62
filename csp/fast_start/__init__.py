"""Modules with minimal imports, because a CLI in a sidecar waits for them before it starts.

Nothing here imports typing, re, dataclasses, pathlib or json, directly or indirectly.
"""
