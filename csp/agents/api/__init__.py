"""Models behind an API as participants of a room.

What is asked of a model, what its answer says, what its failure means are plain functions (`asking`,
`reading`, `failing`); a provider is one function that calls its SDK (`providers`); `connector` is the
participant around them, which the room cannot tell from any other.
"""
