"""Everything that a run can give a verdict on, by its name."""

from __future__ import annotations

from .companions import COMPANION_CONTROLS, COMPANIONS
from .pretrained import PRETRAINED_CLAIMS, PRETRAINED_CONTROLS
from .register import CLAIMS, CONTROLS

OTHERS = (*COMPANIONS, *PRETRAINED_CLAIMS)  # claims of other papers
OURS = (*CONTROLS, *COMPANION_CONTROLS, *PRETRAINED_CONTROLS)  # controls, never counted with claims
ENTRIES = {entry.id: entry for entry in (*CLAIMS, *OTHERS, *OURS)}
