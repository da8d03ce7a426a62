"""Every shape that crosses the network or is written to the journal.

The types are msgspec structs, because one declaration then serves the parser, the encoder and
/openapi.json. Field names are Python's; `field(name=...)` keeps the names on the wire.
"""
