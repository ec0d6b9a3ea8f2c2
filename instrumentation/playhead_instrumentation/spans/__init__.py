"""Spans of logical calls: started on the caller's path, ended off it when the answer is whole."""
