"""The servers CSP is held against."""
