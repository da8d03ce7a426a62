"""Types messages into the CLI."""
