"""Java: found on the machine, and the libraries that it runs."""
