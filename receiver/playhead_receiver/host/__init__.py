"""What the receiver needs of the machine under it: a lock, sockets, files, threads, memory."""
