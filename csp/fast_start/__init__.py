"""Parts that load next to nothing: a CLI behind a sidecar waits for them before it starts.

So nothing here imports typing, re, dataclasses, pathlib, json or what needs them.
"""
