"""The system of one machine: its services, its start, its record, and the processes that it left behind."""
