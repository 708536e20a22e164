"""MLAgentBench: a benchmark of language agents doing machine-learning experimentation."""
