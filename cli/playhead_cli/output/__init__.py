"""How runs and steps look in a terminal."""
