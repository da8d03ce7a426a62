"""Types messages into the CLI and tracks their progress."""
