"""The types of the objects that ``--json`` prints. `docs/schemas` is made of them (``make generate``).

Fields are only ever added. Times are nanoseconds since the epoch, durations nanoseconds, sizes bytes,
costs US dollars, ids hexadecimal. Null means unknown or absent.
"""
