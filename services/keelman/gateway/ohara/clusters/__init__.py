"""Clusters of every kind side by side: who runs where, on which ports, and what must hold before one starts."""
