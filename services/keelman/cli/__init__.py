"""The command line: brings the system up on one machine, and shows and changes what the gateway serves."""
