"""What every engine can do, and the types in which it says that."""
