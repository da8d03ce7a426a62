"""Scripted agents for a room without keys, network or models.

They say so themselves. What one says depends on its prompt alone (`wits`); around it is an ordinary terminal
program with a composer, busy time, an answer that streams (`program`), so that the sidecar, the room, the
modes have the same work with it as with a model's CLI.
"""
