"""The rules of a terminal: read a CLI's screen, decide when to type, follow its replies. Pure functions."""
