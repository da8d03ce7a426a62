"""The tests of the pure decisions: no sleep, no socket, no mock."""
