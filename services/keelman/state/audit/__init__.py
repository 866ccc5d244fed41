"""The audit of the gateways: stored (`trail.py`), listed (`api.py`), and published to its topic (`relay.py`)."""
