"""Servers for the tests of the cluster."""

from tests.cluster.nats_servers import nats_server

__all__ = ["nats_server"]
