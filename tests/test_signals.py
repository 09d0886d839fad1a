"""Stopping long work on signals."""

import signal
import sys
import threading

import pytest

from numbench.core.signals import stop_on_signals
from tests.support.command_line import finish

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.mark.parametrize("first", SIGNALS)
def test_the_first_signal_asks_to_stop_and_a_following_ctrl_c_stops_at_once(
    first: signal.Signals,
) -> None:
    requested = threading.Event()
    before = [signal.getsignal(number) for number in SIGNALS]
    with stop_on_signals(requested.set):
        signal.raise_signal(first)
        assert requested.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_repeated_termination_signals_count_once() -> None:
    calls: list[str] = []
    with stop_on_signals(lambda: calls.append("first"), lambda: calls.append("second")):
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.raise_signal(number)
    assert calls == ["first", "second"]


def test_a_signal_ignored_by_nohup_stays_ignored() -> None:
    code = (
        "import signal; from numbench.core.signals import stop_on_signals\n"
        "with stop_on_signals(lambda: print('stopping')):\n"
        "    signal.raise_signal(signal.SIGHUP); print('still running')\n"
        "    signal.raise_signal(signal.SIGTERM)\n"
        "print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)\n"
    )
    done = finish("sh", "-c", 'trap "" HUP; exec "$0" -c "$1"', sys.executable, code)
    assert done.stdout.splitlines() == ["still running", "stopping", "True"]


def test_in_another_thread_no_handler_is_installed() -> None:
    installed: list[bool] = []

    def work() -> None:
        with stop_on_signals(lambda: None):
            installed.append(signal.getsignal(signal.SIGTERM) is not before)

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert installed == [False]
