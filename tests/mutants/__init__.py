"""Mistakes planted on purpose, to see that the tests notice them."""
