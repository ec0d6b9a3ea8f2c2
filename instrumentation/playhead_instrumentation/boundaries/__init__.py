"""The places where the outside world enters or leaves the process. One file per boundary."""
