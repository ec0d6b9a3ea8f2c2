"""Control of a running agent: rules, and the messages between the agent and a receiver."""
