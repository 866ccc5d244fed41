"""The system of one machine: its services, how it is started, what it writes of itself, what is left of it."""
