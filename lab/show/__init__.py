"""What the reader sees: one style for every figure, in both languages."""
