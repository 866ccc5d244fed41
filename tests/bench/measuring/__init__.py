"""What rows share: the two systems and their brokers, what is copied, rounds, and figures."""
