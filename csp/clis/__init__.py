"""The CLIs that CSP knows, one folder each."""
