"""The state of the CLI, as known to the brain."""
