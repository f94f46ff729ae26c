"""Runs as traces that ui.perfetto.dev opens, in Chrome's Trace Event Format. Standard library only."""
