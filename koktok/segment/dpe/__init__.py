"""Segmentation learnt from words alone: dynamic programming encoding (extra `dpe`, PyTorch).

In: distinct words with counts, with an analyser's tags where these are wanted. Out: `Dpe`, a folder that cuts any word, and draws
cuts with their probabilities. Reading order: tree, learnt, segmenter, learning.
"""
