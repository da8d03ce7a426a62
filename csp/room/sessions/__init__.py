"""Sessions: modes, phases, turns, replies, votes and limits."""
