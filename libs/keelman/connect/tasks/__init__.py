"""Defines what the engine gives to connectors' tasks, and what these return about offsets and data for Spark."""
