"""A real-time group chat in tmux for people and interactive AI agents."""

__version__ = "0.2.0"
