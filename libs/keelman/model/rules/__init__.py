"""What may stand in names, labels, ports, counts and log destinations that users choose."""
