"""The human's place in the room: a live pane in a terminal, a plain loop of lines elsewhere."""
