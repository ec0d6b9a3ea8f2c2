"""Control of running agents: connected processes, leases on runs, and pending orders."""
