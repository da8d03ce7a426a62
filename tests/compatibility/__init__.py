"""What must stay the same while the code moves: old journals, the HTTP description, help texts, MCP tools."""
