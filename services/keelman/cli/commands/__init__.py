"""The commands, each in the module that `keelman.cli.app` names, which is loaded when the command is typed.

Those of every kind of resource stand here, and those of one idea in its room.
"""
