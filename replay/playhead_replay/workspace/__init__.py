"""The working folder of a run at any time: its snapshots, and later changes from the tape."""
