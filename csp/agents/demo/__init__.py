"""Scripted agents for a room without keys, network or models.

They say so themselves. What one says depends on its prompt alone (`responder`); around it is an ordinary
terminal program with a composer, busy time and an answer that streams (`demo_program`), so the sidecar, the
room and the modes have the same work with it as with a model's CLI.
"""
