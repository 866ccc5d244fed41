"""A Kafka 3.7 broker: `python -m support.brokers.broker_3_7`."""

from support.brokers.older_broker import run

if __name__ == "__main__":
    run("3_7")
