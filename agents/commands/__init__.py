"""The commands of ``evaluate.py``: each is a dataclass of its arguments whose method `run` gives the exit code."""
