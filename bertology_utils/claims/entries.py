"""Everything that a run can give a verdict on, by its name."""

from __future__ import annotations

from .companions import COMPANION_CONTROLS, COMPANIONS
from .register import CLAIMS, CONTROLS

OURS = (*CONTROLS, *COMPANION_CONTROLS)  # controls, never counted with claims
ENTRIES = {entry.id: entry for entry in (*CLAIMS, *COMPANIONS, *OURS)}
