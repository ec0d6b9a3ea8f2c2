"""What makes an execution repeatable: clocks, entropy, order. Level ``exchanges`` loads none of it."""
