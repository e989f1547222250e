"""Two readings of the paper: its text, and what its published code did.

The notebooks say in each case what the two do differently.
"""

PROTOCOLS = ("paper", "official")

# Of a link in §4.2: the paper's text has the predicate attend ("high attention weight for 'he' while processing
# 'agitated'"), its code the element.
DIRECTIONS = ("predicate to element", "element to predicate", "both")

# What a map is of: the paper's attention weights, or what they carry (Kobayashi et al., 2020).
WEIGHINGS = ("weight", "norm")
