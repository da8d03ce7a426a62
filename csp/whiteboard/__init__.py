"""The notes of a room where they can be found: by word, by name, by meaning."""
