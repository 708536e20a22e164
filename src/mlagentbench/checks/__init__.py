"""Check a task: that its parts fit together, that its grader can be trusted, and that nothing the agent sees gives the answers away."""
