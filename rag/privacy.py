"""Switches off what libraries would report to their makers: nothing leaves the machine unasked."""

from __future__ import annotations

import os

# Read by each library when it is loaded. onnxruntime's is the one that counts most: its Windows
# telemetry also runs elsewhere, some 15 s after a model is opened, and its own call to disable it
# (`disable_telemetry_events`) comes too late (measured with 1.32.0).
SWITCHES = {
    "ORT_DISABLE_TELEMETRY": "1",
    "ANONYMIZED_TELEMETRY": "False",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
}


def silence_telemetry() -> None:
    """Set every switch, whatever the environment said."""
    os.environ.update(SWITCHES)
