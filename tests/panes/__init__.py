"""The group chat in tmux, with a real tmux on a socket of its own."""
