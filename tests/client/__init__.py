"""Tests of csp.client against a real gateway."""
