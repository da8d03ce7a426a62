"""Tests of the agents that come with CSP."""
