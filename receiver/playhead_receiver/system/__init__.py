"""Operating system services: the writer lock, sockets, durable files, threads, memory."""
