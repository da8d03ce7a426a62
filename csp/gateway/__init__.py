"""The gateway: one room, served over HTTP with WebSocket."""
