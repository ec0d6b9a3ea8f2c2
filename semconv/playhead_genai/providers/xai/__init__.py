"""xAI's own API over gRPC: protobuf messages, read by a declared table of their fields."""
