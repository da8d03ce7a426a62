"""The tests of the whiteboard's index."""
