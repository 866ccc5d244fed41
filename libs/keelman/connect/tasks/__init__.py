"""Defines what connectors' tasks get from the engine, and what they return about offsets and data for Spark."""
