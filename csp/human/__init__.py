"""The human's interface to the room: an interactive pane in a terminal, or a plain line loop elsewhere."""
