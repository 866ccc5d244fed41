"""Connectors written in Java: loaded by JPype into plugin hosts and slots, where keelman's engine copies for them."""
