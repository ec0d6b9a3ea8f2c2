"""MCP clients: servers on stdio, tool calls, sessions over HTTP."""
