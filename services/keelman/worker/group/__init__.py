"""The group of workers: membership, who leads, and how work is shared out."""
