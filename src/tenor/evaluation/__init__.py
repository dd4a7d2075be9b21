"""Everything about measuring that needs no run folder: metrics, scores, labelled rows and the scoring loop.

The public function `tenor.evaluate` loads a run, so it is in `prediction/evaluate.py`.
"""
