"""Clients of MCP: servers on stdio, calls of tools, sessions over HTTP."""
