"""Base of the other folders: patches, lanes, forks, the real clock. It imports none of them."""
