"""The trainer page: every file in it is the one in examples/trainers/, and runs as it stands."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from tests.support import FOLDER

ROOT = FOLDER.parents[3]
PACKAGE = FOLDER.parent
PAGE = (ROOT / "docs" / "trainers.md").read_text(encoding="utf-8")

FILES = dict(re.findall(r"^`(examples/trainers/[^`]+)`:\n\n```\w+\n(.*?)^```$", PAGE, re.M | re.S))

# slime's own script: in the example's folder there is only what a user writes.
SLIME_TRAIN = "import sys\nfrom slime.rollout_manager import main\nmain(sys.argv[1:])\n"


def run(command: list[str], folder: Path, *more: Path) -> str:
    paths = (PACKAGE, FOLDER / "stubs", *more)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stderr[-4000:]}")
    return done.stdout


class QuickstartTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="paddock-quickstart-"))
        self.addCleanup(shutil.rmtree, self.folder)
        for name, text in FILES.items():
            file = self.folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")

    def test_the_page_has_the_files_of_the_examples_and_no_other(self) -> None:
        on_disk = {
            str(file.relative_to(ROOT)): file.read_text(encoding="utf-8")
            for file in (ROOT / "examples" / "trainers").rglob("*")
            if file.is_file()
        }
        self.assertEqual(FILES, on_disk)
        self.assertEqual(PAGE.count("```"), 2 * (len(FILES) + 1))

    def test_plain_python_takes_every_group_of_both_steps_in_fifty_lines(self) -> None:
        self.assertLessEqual(FILES["examples/trainers/plain.py"].count("\n"), 50)
        out = run([sys.executable, "plain.py"], self.folder / "examples" / "trainers")
        for step in (0, 1):
            lines = re.findall(rf"^step {step} (\S+): (?:valid|zero_variance|partial),", out, re.M)
            self.assertEqual(sorted(lines), [f"arithmetic/sum-{number}" for number in range(4)])
        self.assertEqual(len(re.findall(r"^  loss [+-]\d", out, re.M)), 8)

    def test_slime_trains_two_rollouts_and_evaluates(self) -> None:
        folder = self.folder / "examples" / "trainers" / "slime"
        (folder / "train.py").write_text(SLIME_TRAIN, encoding="utf-8")
        report = json.loads(run(["bash", "run.sh"], folder))
        # Two rollouts of four groups of eight; over /generate of token ids no chain is cut.
        self.assertEqual(report, {"samples": [32, 32], "evaluated": {"sums": 2}})

    def test_trl_trains_and_stops(self) -> None:
        # TRL brings numpy.
        folder = self.folder / "examples" / "trainers" / "trl"
        run([sys.executable, "train.py"], folder, FOLDER / "fast")

    def test_verl_trains_on_the_advantages_and_validates_on_the_rewards(self) -> None:
        report = json.loads(run(["bash", "run.sh"], self.folder / "examples" / "trainers" / "verl"))
        self.assertEqual(report["rows"], 64)
        self.assertTrue(any(report["advantages"]))
        # At temperature 0 the simulator takes its heaviest plan, the correct one.
        self.assertEqual(report["val_rewards"], [1.0, 1.0])
