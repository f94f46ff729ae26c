"""What builds the book: one bilingual source per chapter -> two notebooks -> two sites."""
