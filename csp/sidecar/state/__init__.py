"""The brain's knowledge of its CLI."""
