"""The requests of a tape, asked again of the application that they came to: a server without network."""
