"""What a run cost: memory, time, where it was measured, and records of it that can be compared."""
