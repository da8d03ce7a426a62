"""All types that cross the network or are written to the journal.

The types are msgspec structs, because one declaration then serves the parser, the encoder and /openapi.json.
Field names follow Python; `field(name=...)` keeps the names on the wire.
"""
