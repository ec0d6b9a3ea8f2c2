"""Standard input, standard output and standard error."""
