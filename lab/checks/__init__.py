"""Checks that the lab runs against itself: vLLM's schedules, chunked against whole, planted faults, recorded suites."""
