"""The engine beside its peers, on the same weights in one process. `make bench` runs it; nothing in lab needs it."""
