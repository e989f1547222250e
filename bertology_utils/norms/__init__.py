"""Norm-based attention analysis (Kobayashi et al., 2020 and 2021): the paper's figures by what weights carry.

``special_tokens``: what [CLS], [SEP] and punctuation lose when weights become norms, how long their
vectors are, and whether attention to them is a no-op. ``heads``: do heads keep their rank along
dependencies and frame-semantic links. ``mixing``: how much of a token's new vector comes from other
tokens. ``measure``: what notebook 7 and its appendix share.
"""
