"""The commands: one module a group of them, loaded when one of its commands is typed (see `keelman.cli.app`)."""
