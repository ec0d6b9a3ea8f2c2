"""Commands of Redis through redis-py, blocking and with asyncio."""
