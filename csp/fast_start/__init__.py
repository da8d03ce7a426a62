"""Modules with minimal imports: a CLI in a sidecar waits for them before it starts.

Nothing here imports typing, re, dataclasses, pathlib or json, directly or indirectly.
"""
