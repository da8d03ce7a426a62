"""Measure the gateway, the sidecar and the modes on this machine: what `csp bench` runs."""
