"""The three real CLIs at pinned versions, brought up with scratch homes against the model server."""
