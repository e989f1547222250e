"""What a pre-trained encoder says by itself, beside what is published of bert-base: forward passes alone, no training.

``bert_base``: is this encoder that one. ``panels``: its heads beside those of
the published figures. ``pointing``: heads that point along dependencies, beside
Clark et al.'s. ``sentences``: of FrameNet, drawn. ``cost``: time and memory, estimated beforehand. ``claims``:
judged. ``findings``: in sentences. ``drawing``: the figures. Over several encoders: ``many``: a claim in how many of
them; ``behaviour``: what each head does; ``same_heads``: matched by that; ``many_drawing``: the figure.
"""
