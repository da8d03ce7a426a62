"""What the brain knows about its CLI."""
