"""The gateway: serves one room over HTTP and WebSocket."""
