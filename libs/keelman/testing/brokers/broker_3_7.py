"""A Kafka 3.7 broker: `python -m keelman.testing.brokers.broker_3_7`."""

from keelman.testing.brokers.older_broker import run

if __name__ == "__main__":
    run("3_7")
