"""A waiting process with imported libraries, which is forked for each replay."""
