"""The common base of rows: the two systems and their brokers, the copied data, rounds, and figures."""
