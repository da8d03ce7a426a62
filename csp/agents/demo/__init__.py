"""Scripted agents for a room without keys, network or models.

They state that they are scripts. A reply depends only on the prompt (`responder`). It is wrapped in
an ordinary terminal program with a composer, busy time and a streamed reply (`demo_program`), so the
sidecar, the room and the modes treat it like a model's CLI.
"""
