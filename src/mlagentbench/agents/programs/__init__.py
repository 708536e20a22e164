"""Agents that are programs of their own: how one is described (`agent.toml`), and how it is installed.

Each folder here describes one agent. `engine/agents/program.py` runs them.
"""
