"""The brain: connects the room with the CLI."""
