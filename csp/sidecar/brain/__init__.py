"""The brain, which connects the room and the CLI."""
