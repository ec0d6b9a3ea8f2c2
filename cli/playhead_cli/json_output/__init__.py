"""What ``--json`` prints, as types, one a command. `docs/schemas` is made of them (``make generate``).

Fields are only ever added. Times are nanoseconds since the epoch, durations nanoseconds, sizes bytes,
costs US dollars, ids hexadecimal. Null stands for what is not known or not there.
"""
