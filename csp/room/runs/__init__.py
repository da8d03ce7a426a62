"""Review runs: a builder and a reviewer work on one task."""
