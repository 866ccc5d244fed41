"""The settings of each kind of object as tables of data: their checks, their defaults, and their form in inspect."""
