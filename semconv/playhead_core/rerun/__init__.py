"""Input of a replay, fork or resume process: plans, edits, headers, connections."""
