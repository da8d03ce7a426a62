"""The brain's view of the CLI's state."""
