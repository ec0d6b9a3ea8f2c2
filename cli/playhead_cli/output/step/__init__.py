"""How one step looks: what was said first, the wire behind an option."""
