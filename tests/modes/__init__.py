"""The modes from end to end: demo agents behind real sidecars, a real gateway, what its users type."""
