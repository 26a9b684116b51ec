import sys
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2] / "tools"), str(HERE.parent), str(HERE.parents[1] / "kernel")]
