"""Values as nodes: which types there are, how values are packed, read, and compared."""
