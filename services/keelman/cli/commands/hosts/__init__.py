"""The commands about hosts: the system of this one, up, down and how it does; nodes joined, cordoned and drained."""
