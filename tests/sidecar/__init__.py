"""Tests of csp/sidecar, on real terminals."""
