"""Base for all other folders: lanes, patching, forks, the real clock. It imports none of them."""
