"""The orchestrator: when it is woken, and what it is told."""
