"""Settings by name: kinds are kept, what is none is told."""

import pytest

from cito.solvers.learning.bptt import BPTTSettings
from cito.solvers.learning.ppo import PPOSettings
from cito.solvers.learning.settings import assignments, changed
from cito.solvers.learning.training import ALGORITHMS, TrainingConfig


def test_settings_are_changed_by_name() -> None:
    given = assignments(["critic=true", "rate=1", "hidden=[32, 16]", "window=8"])
    s = changed(BPTTSettings(), given)
    assert s.critic is True and s.hidden == (32, 16) and s.window == 8
    assert s.rate == 1.0 and isinstance(s.rate, float)
    assert s.gradient == BPTTSettings().gradient


def test_they_reach_the_learner() -> None:
    config = TrainingConfig("trot", envs=2, settings={"hidden": (8,), "window": 4})
    assert config.settings == {"hidden": [8], "window": 4}
    assert ALGORITHMS["bptt"](config).policy.sizes[1:-1] == (8,)
    ppo = ALGORITHMS["ppo"](TrainingConfig("trot", "ppo", envs=2, settings={"horizon": 5}))
    assert ppo.settings == PPOSettings(horizon=5)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("speed=1", r"`settings` must be named window, .*, got 'speed'"),
        ("gradient=1", "`settings` must be named"),
        ("window=0.5", "`window` must be a whole number, got 0.5"),
        ("window=true", "`window` must be a whole number, got True"),
        ("critic=1", "`critic` must be true or false, got 1"),
        ("hidden=3", r"`hidden` must be a list such as \[256, 128\], got 3"),
        ("betas=[0.5, true]", "`betas` must be a number, got True"),
        ("rate", "--set must be NAME=VALUE"),
        ("rate=fast", "--set must be NAME=VALUE"),
    ],
)
def test_misuse_is_told(given: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        changed(BPTTSettings(), assignments([given]))
