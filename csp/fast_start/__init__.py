"""Modules with minimal imports, because a CLI in a sidecar cannot start until they are loaded.

No module here imports typing, re, dataclasses, pathlib or json, directly or indirectly.
"""
