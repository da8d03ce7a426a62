"""The relay: passes bytes between a person's terminal and that of a CLI. Imports next to nothing."""
