"""Agents that are part of CSP."""
