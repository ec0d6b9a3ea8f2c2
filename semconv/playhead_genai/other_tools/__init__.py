"""Reads what other tools store of a call: arguments and result of the SDK's function, as JSON."""
