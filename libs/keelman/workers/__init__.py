"""Holds what workers share with the services around them: rules of properties, plugins as files, a REST client."""
