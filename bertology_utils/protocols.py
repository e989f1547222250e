"""Two readings of the paper: its text, and what its published code did.

The notebooks say in each case what the two do differently.
"""

PROTOCOLS = ("paper", "official")
