"""The human pane."""
