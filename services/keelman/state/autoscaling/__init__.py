"""Autoscaling: the number of workers follows their load."""
