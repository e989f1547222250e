"""What attention weighs: the paper's figures by what weights carry (Kobayashi et al., 2020 and 2021).

``falls``: what types of token lose when weights become norms; ``lengths``: how
long their vectors are. ``cutting``: what happens without the attention to one
kind of token; ``gradients``: what a weight means to the answer. ``heads``: do
heads keep their rank; ``patterned``: do their maps show more. ``mixing``: how
much of a token's new vector comes from other tokens. ``claims``: judged.
``findings``: in sentences. ``summary``: for the results file. ``drawing``: the
figures. ``needs``: what is trained.
"""
