"""Communication between processes of `multiprocessing`: messages, connections, shared locks."""
