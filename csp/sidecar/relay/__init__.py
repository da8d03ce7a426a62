"""The relay: passes bytes between the terminal of a person and that of a CLI. Imports next to nothing."""
