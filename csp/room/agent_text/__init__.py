"""The text of agents: which lines are commands, and what the room does about them."""
