"""Runs, whatever the engine: summed up, listed, named, found."""
