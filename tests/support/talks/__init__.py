"""A program that talks to a model over a WebSocket, what the model says, and what is told of that."""
