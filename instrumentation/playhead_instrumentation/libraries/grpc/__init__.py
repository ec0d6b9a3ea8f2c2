"""gRPC calls, blocking and asynchronous."""
