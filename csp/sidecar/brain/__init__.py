"""The brain: connects the room and the CLI."""
