"""What fine-tuning changes (§4.3).

``measure``: how alike attention maps are before and after (Figure 5). ``scores``: what
pre-training and fine-tuning are worth (Table 1), and layer restoring: pre-trained layers put back.
``plots``: the figures.
"""
