"""Bodies as the real providers send them: built whole, and cut into the events of a stream.

Every builder returns plain JSON values; `sse` turns events into the chunks of a body. Ids, times and
counts are constants, so that two calls of a builder give equal bytes.
"""
