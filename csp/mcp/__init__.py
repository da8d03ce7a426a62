"""The room as tools for MCP clients; only `mcp_server`, `stdio` and `asgi` load the SDK."""
