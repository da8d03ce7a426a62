"""Rooms that several gateways serve, over NATS JetStream.

The events of a room are the messages of one subject, `csp.j.<shard>.<room>`, in one of a few streams; each
message is one batch. `stream_log` appends by compare-and-set: a message is accepted only if the one before it
is the last of the subject, so that one of several writers succeeds. Every accepted message is republished to
`csp.e.<shard>.<room>`, which readers follow; what they miss they fetch from the stream. `bus` is the
connection, `setup` creates and checks the streams. Nothing outside this package imports `nats`.
"""
