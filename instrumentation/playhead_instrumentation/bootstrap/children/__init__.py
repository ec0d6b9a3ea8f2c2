"""How recording goes on in the processes that a recorded one starts, or becomes."""
