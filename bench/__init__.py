"""What the system costs, measured: `python -m bench` (`make bench`). Apart from tests, which never time anything."""
