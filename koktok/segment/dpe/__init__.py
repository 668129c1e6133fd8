"""Segmentation learnt from words alone: dynamic programming encoding (extra `dpe`, PyTorch).

`Dpe` is a folder that cuts any word, and draws cuts with their probabilities; `koktok.training.dpe` learns it. Reading order:
tree, learnt, segmenter.
"""
