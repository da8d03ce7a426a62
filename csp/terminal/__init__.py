"""The terminal rules as pure functions: read a CLI's screen, decide when to type, and follow its replies."""
