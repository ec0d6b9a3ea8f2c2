"""Calls over gRPC, blocking and asynchronous."""
