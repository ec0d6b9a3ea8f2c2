"""What the starter of a replay, a fork or a resume hands to its process."""
