"""The relay, which passes bytes between a person's terminal and a CLI's. Its imports are minimal."""
