"""An MCP server of a user's own."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("mine")


@server.tool()
def echo(text: str) -> str:
    """Say it again."""
    return f"echoed {text}"


if __name__ == "__main__":
    server.run()
