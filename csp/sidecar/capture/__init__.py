"""Reads the output of the CLI: its transcripts and its screen."""
