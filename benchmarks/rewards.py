"""Measure rewards per CPU-second, each response once. Prints Markdown.

python benchmarks/rewards.py
"""

from __future__ import annotations

import argparse
import platform
import random
import time
from typing import get_args

from numbench.dataset.store import open_dataset
from numbench.rl.rewards import RewardName, make_reward

REPEATS = 3


def main() -> None:
    """Measure both rewards on answers to `v1`, half of them wrong, and print the table."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    draws = random.Random(1)
    pairs = []
    for items in open_dataset("v1").by_task.values():
        for item in items:
            answer = item.answer
            if isinstance(answer, str):
                wrong = "F" if answer.isalpha() else answer[:-1] + draws.choice("1379")
                text = answer if draws.random() < 0.5 else wrong
                shown = f'"{text}"' if text.isalpha() else text
            else:
                shown = f"[{', '.join(answer if draws.random() < 0.5 else answer[::-1])}]"
            pairs.append((item, f'{{"answer": {shown}}}'))
    print("# Speed of rewards\n")
    print(f"Python {platform.python_version()}, one core, {len(pairs):,} answers to `v1` in the")
    print("requested format, half of them wrong. The fastest of three repetitions.\n")
    print("| reward | tasks | rewards per CPU-second |\n|---|---|---:|")
    for name in get_args(RewardName):
        for scope in ("all", "number or letter"):
            chosen = [p for p in pairs if scope == "all" or isinstance(p[0].answer, str)]
            print(f"| `{name}` | {scope} | {speed(chosen, name):,.0f} |")


def speed(pairs: list[tuple], name: RewardName) -> float:  # type: ignore[type-arg]
    """Return the rewards per CPU-second, with the rewards of the items made beforehand."""
    rewards = [(make_reward(item, name), text) for item, text in pairs]
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        for reward, text in rewards:
            reward(text)
        times.append(time.process_time() - start)
    return len(pairs) / min(times)


if __name__ == "__main__":
    main()
