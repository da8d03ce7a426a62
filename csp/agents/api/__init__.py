"""API models as participants of a room.

Building a request, reading an answer and explaining a failure are plain functions (`request`, `reply_stream`,
`call_errors`). A provider is one function that calls its SDK (`providers`). `connector` is the participant
around them; for the room it is a participant like any other.
"""
