"""Scripted agents for a room without keys, network or models.

They say themselves that they are scripts. What one says depends only on its prompt (`responder`). Around it
is an ordinary terminal program with a composer, busy time and a streamed answer (`demo_program`), so the
sidecar, the room and the modes treat it like a model's CLI.
"""
