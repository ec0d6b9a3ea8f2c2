"""Control of the running program by operators and rules. Imported only where the setting is on."""
