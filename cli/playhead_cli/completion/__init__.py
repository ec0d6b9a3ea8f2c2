"""Shell completion. It imports little, because the user is waiting."""
