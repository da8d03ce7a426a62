"""What the tests of logs need beside files."""

from tests.cluster.nats_servers import nats_server

__all__ = ["nats_server"]
