"""Wrap an interactive CLI, so that it can take part in a room."""
