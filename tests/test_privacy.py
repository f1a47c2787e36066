from __future__ import annotations

import json
import os
import subprocess
import sys

from rag.privacy import SWITCHES


def test_importing_the_package_silences_every_library() -> None:
    wanted_otherwise = {**os.environ, "ORT_DISABLE_TELEMETRY": "0", "ANONYMIZED_TELEMETRY": "True"}
    program = "import json, os, rag; print(json.dumps(dict(os.environ)))"
    ran = subprocess.run(
        [sys.executable, "-c", program], env=wanted_otherwise, capture_output=True, check=True
    )
    seen = json.loads(ran.stdout)
    assert {name: seen[name] for name in SWITCHES} == SWITCHES
