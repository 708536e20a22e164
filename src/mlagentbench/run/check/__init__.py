"""A task proves itself: its parts fit together, its grader can be trusted, and nothing the agent sees tells the answers."""
