"""Stand-ins for the functions that read clocks and entropy."""
