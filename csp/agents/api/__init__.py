"""Models behind an API as participants of a room.

Building a request, reading an answer and explaining a failure are plain functions (`request`, `reply_stream`,
`call_errors`); a provider is one function that calls its SDK (`providers`); `connector` is the participant
around them, which the room cannot tell from any other.
"""
