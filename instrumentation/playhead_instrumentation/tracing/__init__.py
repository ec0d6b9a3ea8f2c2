"""Spans of the run and of its logical calls: started on the caller's path, ended off it."""
