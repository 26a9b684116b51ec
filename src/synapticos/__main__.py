"""`python -m synapticos` is `syn`."""

from synapticos.cli import main

main()
