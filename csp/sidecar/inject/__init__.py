"""Type messages into the CLI and track their progress."""
