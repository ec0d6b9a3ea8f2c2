"""An MCP server over the query API: runs for agents, in a compact form."""
