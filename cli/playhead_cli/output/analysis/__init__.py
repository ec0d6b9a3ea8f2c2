"""What a terminal shows of many runs."""
