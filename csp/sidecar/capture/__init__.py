"""Reads what the CLI writes: its transcripts, its screen."""
