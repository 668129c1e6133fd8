"""Ctrl-C: one press is enough, where Python alone would not hear it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ROOT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends signals as Unix does")

BEGIN = """
import ctypes, os, signal, sys, threading, time
from koktok.cli.interrupt import interruptible
def press(): time.sleep(0.5); signal.pthread_kill(threading.get_ident(), signal.SIGINT)
"""
ENDINGS = {
    "another thread gets the signal, and the main one is blocked": """
threading.Thread(target=press, daemon=True).start()
os.read(0, 1)
""",
    "a callback from compiled code drops the exception": """
@ctypes.CFUNCTYPE(None)
def callback():
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(100): time.sleep(0.01)
callback()
time.sleep(20)
""",
    "nothing is in the way": """
os.kill(os.getpid(), signal.SIGINT)
time.sleep(20)
""",
}
TIDYING = """
except KeyboardInterrupt:
    try:
        time.sleep(1.5)
        print("tidy")
    except KeyboardInterrupt:
        print("disturbed")
"""


@pytest.mark.parametrize("what", ENDINGS)
def test_one_press_is_heard_and_tidying_up_is_left_alone(what: str) -> None:
    inside = "\n".join(f"        {line}" for line in ENDINGS[what].splitlines())
    code = f"{BEGIN}\nwith interruptible():\n    try:\n{inside}\n{TIDYING.replace(chr(10), chr(10) + '    ')}"
    words = [sys.executable, "-W", "error", "-c", code]
    process = subprocess.Popen(
        words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        process.wait(timeout=15)
    finally:
        process.kill()
        out, err = process.communicate()
    assert (out, err) == ("tidy\n", "")


def test_what_is_ignored_or_handled_elsewhere_stays_so() -> None:
    from koktok.cli.interrupt import interruptible

    hook, before = sys.unraisablehook, signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interruptible():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            assert sys.unraisablehook is hook
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with interruptible():
            assert sys.unraisablehook is not hook
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert sys.unraisablehook is hook
    finally:
        signal.signal(signal.SIGINT, before)


def test_control_c_says_how_to_go_on(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "koktok", "train", "-", "--out", str(tmp_path / "out")]
    process = subprocess.Popen(
        words, cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ.copy()
    )
    assert process.stdin is not None
    # More than a pipe holds: this ends when it is being read. Then code is compiled, or what was compiled is loaded.
    process.stdin.write("나는 집에 간다.\n".encode() * 100_000)
    process.stdin.flush()
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    try:
        process.wait(timeout=60)
    finally:
        process.kill()
        _, err = process.communicate()
    assert process.returncode == 130, err.decode()
    assert time.monotonic() - begun < 60
    assert "stopped" in err.decode()
    assert not (tmp_path / "out").exists()
