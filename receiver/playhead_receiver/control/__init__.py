"""Control of running agents: who is connected, who holds a run, and the orders on their way."""
