"""Shared by commands that start a program: the program, its process, and where it delivers."""
