"""Those outside an agent: operators, senders, viewers, people at a terminal."""
