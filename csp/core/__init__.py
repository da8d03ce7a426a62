"""The pure decisions of a room: values in, values out."""
