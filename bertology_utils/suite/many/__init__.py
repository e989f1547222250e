"""The command ``pretrainings``: what ``bert`` does for one encoder, for a list of them, and what they say together.

``lists``: which encoders; ``candidates``: those that can be had; ``runs``: each
measured, once; ``collected``: claims and heads over all; ``page``: in words;
``command``: all in order.
"""
