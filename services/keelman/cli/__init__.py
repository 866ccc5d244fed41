"""The command line: starts the system on one machine, and shows and changes the gateway's resources."""
