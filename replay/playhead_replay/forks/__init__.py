"""Forks and resumes: where a tape is cut, what is edited there, and how the process is started."""
