"""The settings of each kind of object as tables of data: what is checked, what is the default, what inspect
shows."""
