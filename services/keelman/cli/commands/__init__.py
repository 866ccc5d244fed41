"""The commands, each in the module that `keelman.cli.app` names, which is loaded when the command is typed."""
