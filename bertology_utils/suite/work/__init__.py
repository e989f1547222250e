"""What has to be trained and swept before notebooks run, and who does it.

``needs``: what each notebook's section declares. ``plan``: what is left of it,
its time and memory. ``workers``: the plan carried out, by ``processes`` of this
``machine`` or by a cluster; ``worker``: one item of it. ``bar``: how far it is.
"""
