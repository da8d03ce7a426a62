"""Measure the gateway on the machine it runs on."""
