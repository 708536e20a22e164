"""The processor: how nodes and edges tell each other what they know, once for every step of the algorithm.

`model.py` calls `build_processor` and puts the processor between its encoders and its decoders.
"""

import torch
from torch import nn


class MessagePassing(nn.Module):
    """Every node takes in a message from every node: the elementwise maximum of all of them."""

    def __init__(self, hidden_dim):
        super().__init__()
        self.sender = nn.Linear(2 * hidden_dim, hidden_dim)
        self.receiver = nn.Linear(2 * hidden_dim, hidden_dim)
        self.edge = nn.Linear(hidden_dim, hidden_dim)
        self.skip = nn.Linear(2 * hidden_dim, hidden_dim)
        self.update = nn.Linear(hidden_dim, hidden_dim)

    def message(self, z, edges):
        """The message from node i to node j, for all i and j: (batch, nodes, nodes, hidden)."""
        return self.sender(z)[:, :, None] + self.receiver(z)[:, None] + self.edge(edges)

    def forward(self, nodes, edges, adj, hidden):
        """One step.

        Args:
            nodes: encoded inputs and hints of the nodes, (batch, nodes, hidden).
            edges: the same of the edges, (batch, nodes, nodes, hidden).
            adj: 1 where there is an edge, and from every node to itself, (batch, nodes, nodes).
            hidden: what this returned at the step before, zeros at the first, (batch, nodes, hidden).

        Returns:
            The new hidden state of the nodes, and one of the edges, (batch, nodes, nodes, hidden), or None.
        """
        z = torch.cat((nodes, hidden), dim=-1)
        received = self.message(z, edges).amax(dim=1)
        return torch.relu(self.skip(z) + self.update(received)), None


def build_processor(hidden_dim):
    """The processor that the model uses."""
    return MessagePassing(hidden_dim)
