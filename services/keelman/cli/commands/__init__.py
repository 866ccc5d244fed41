"""The commands, each in the module that `keelman.cli.app` names, which is loaded when the command is typed.

Commands for every kind of resource are here; commands for one idea are in its room.
"""
