"""The scripts that make models, and the harness of the layers' tests, are used by these tests too."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/kernel/layers")]
