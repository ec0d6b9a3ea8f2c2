"""How long what is stored is kept."""
