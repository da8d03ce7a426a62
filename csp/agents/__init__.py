"""Agents that come with CSP."""
