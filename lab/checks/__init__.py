"""Checks that the lab runs against itself: conformance with vLLM's scheduler, equality of chunked and whole prefill."""
