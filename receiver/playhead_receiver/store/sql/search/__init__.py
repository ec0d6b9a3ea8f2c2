"""What is read into the indexes, and what is made of their answers."""
