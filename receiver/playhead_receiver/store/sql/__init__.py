"""What engines that speak SQL have in common: the same tables, asked and changed in the same words."""
