"""What keeps the data folder in order: retention, the index, unnamed calls, backups, errands."""
