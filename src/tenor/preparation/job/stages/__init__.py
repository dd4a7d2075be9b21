"""The stages of the job, in this order: map, dedupe, count, translate, shard. `word_ids.py` has compiled loops."""
