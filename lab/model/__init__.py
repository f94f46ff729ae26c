"""A Llama-family decoder over a paged KV cache: config, weights, ragged batches and attention."""
