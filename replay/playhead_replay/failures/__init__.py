"""What went wrong in a run, by type and code. Derived when it is read; stored facts never change."""
