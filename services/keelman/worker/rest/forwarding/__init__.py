"""Requests that another worker answers: sent there, signed, repeated once its leader left."""
