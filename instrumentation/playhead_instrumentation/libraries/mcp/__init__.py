"""MCP: servers on stdio, tool calls, sessions over HTTP, trace context between client and server."""
