"""HTTP requests of the program: one kind of exchange, and an edge for each library."""
