"""Verbs that start a program: which one, as which process, delivering where."""
