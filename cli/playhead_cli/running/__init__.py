"""Shared by commands that start a program: the program, its process, and its receiver."""
