"""What a pre-trained encoder does by itself, beside what is published of bert-base: forward passes alone, no training.

``measure``: what the paper's sections measure of it, in one pass over each task's inputs and one
over FrameNet's sentences. ``bert_base``: is it bert-base; its heads beside those of the published
figures, and of Clark et al. (2019). ``plots``: the figures of notebook 8.
"""
