"""The whiteboard: its notes, its summaries, and the names found in a note."""
