"""HTTP requests of the program: one kind of exchange, and an adapter for each library."""
