"""Runs for agents: an MCP server over the query API, in a compact form."""
