"""The room as tools for MCP clients; the SDK is loaded by `server`, `stdio` or `asgi` alone."""
