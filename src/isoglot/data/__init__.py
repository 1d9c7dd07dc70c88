"""From files to batches: records, readers, corpora, token tables."""
