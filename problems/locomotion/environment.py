"""A batch of robots that learn: observations in, actions out, episodes that begin and end.

    environment = LocomotionEnvironment(locomotion_task("trot"), count=16, seed=0)
    o = environment.observe()                       # (B, n)
    outcome = environment.step(actions)             # (B, nj) in [-1, 1]; see `Outcome`

Learners with gradients call `advance`, which leaves the running cost to be had for whole windows at
once and keeps what the transposed step needs. Everything random comes from one generator, so that
`arrays` and `restore` continue an interrupted run bit by bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from cito.dynamics.types import Array, whole_number
from cito.problems.locomotion.driven_steps import ControlStep, DrivenSteps, Plant
from cito.problems.locomotion.episodes import draw_commands, draw_plant, draw_states
from cito.problems.locomotion.features import BASE_Q, Features, features
from cito.problems.locomotion.finite import check_finite
from cito.problems.locomotion.legs import Legs
from cito.problems.locomotion.observation import Observer
from cito.problems.locomotion.running_cost import RunningCost
from cito.problems.locomotion.task import LocomotionTask

LOW, UPRIGHT = 0.55, 0.6  # of the wanted height, of up_z: below either the robot has fallen
KNEE_CLEARANCE = 0.02  # of a knee's axis above the ground, else it touches [m]
REMEMBERED = ("state", "impulse", "command", "phase", "age", "action", "frames")
Bools = np.ndarray[Any, np.dtype[np.bool_]]


class Advance(NamedTuple):
    """One control step of the batch, before episodes that ended are followed by new ones.

    start: features before the step; state: after it (B, nx); step: for the transposed step; plant,
    command (B, 3), action, before (B, nj): of the step; phase: of the gait after it (B,); fell,
    ended: (B,) whether the robot fell, and whether the episode is over for any reason.
    """

    start: Features
    state: Array
    step: ControlStep
    plant: Plant
    command: Array
    action: Array
    before: Array
    phase: Array
    fell: Bools
    ended: Bools


class Outcome(NamedTuple):
    """What `step` returns: observation (B, n), of new episodes where some ended; cost (B,) of the
    step and terms of it (B,) by name; fell (B,), timed_out (B,); last (B, n): the observation
    before new episodes began."""

    observation: Array
    cost: Array
    terms: dict[str, Array]
    fell: Bools
    timed_out: Bools
    last: Array


class LocomotionEnvironment:
    """B robots on one task.

    Args:
        task: what they shall do.
        count: B.
        seed: of everything random.
        threads: of the simulator.
        automatic: whether a new episode begins where one ends, and commands change.
    """

    def __init__(
        self,
        task: LocomotionTask,
        count: int = 16,
        seed: int = 0,
        threads: int = 1,
        automatic: bool = True,
    ) -> None:
        self.task = task
        self.count = B = whole_number("count", count, 1)
        self.automatic = automatic
        self.random = np.random.default_rng(whole_number("seed", seed, 0))
        self.legs = Legs(task.robot)
        self.observer = Observer(task)
        self.cost = RunningCost(task, self.legs)
        self.steps = DrivenSteps(task, threads)
        self.action_size = nj = len(task.nominal)
        self.observation_size = self.observer.layout.size * task.history
        d = self.steps.dynamics
        self.plant = Plant(
            np.ones((B, d.nc)), np.zeros((B, d.n_theta)), np.ones((B, nj)), np.zeros(B)
        )
        self.state, self.impulse = np.zeros((B, d.nx)), np.zeros((B, d.n))
        self.command, self.phase, self.age = np.zeros((B, 3)), np.zeros(B), np.zeros(B)
        self.action = np.zeros((B, nj))
        self.frames = np.zeros((B, task.history, self.observer.layout.size))
        self.falls = self.time = 0
        self.seen: Features  # of the state, as observed last
        self.begin(np.ones(B, bool))

    def begin(self, which: Bools) -> None:
        """New episodes of some robots."""
        count, task, d = int(which.sum()), self.task, self.steps.dynamics
        if not count:
            return
        command = draw_commands(task, count, self.random)
        plant = draw_plant(task, count, d.nc, d.n_theta, self.random)
        state = draw_states(task, self.legs, command, task.randomization.reset, self.random)
        for all_, new in zip(self.plant, plant):
            all_[which] = new
        self.put(which, state, command, self.random.random(count))

    def put(self, which: Bools, state: Array, command: Array, phase: Array) -> None:
        """Let episodes begin in states (m, nx) with commands (m, 3) and phases (m,)."""
        self.state[which], self.command[which], self.phase[which] = state, command, phase
        self.impulse[which], self.action[which], self.age[which] = 0.0, 0.0, 0.0
        self._look(which)

    def _look(self, fresh: Bools | None) -> None:
        """Observe; a `fresh` episode has seen the same all along."""
        self.seen = features(self.state)
        frame = self.observer(self.seen, self.action, self.command, self.phase)
        if self.observer.noise.any():
            frame += self.observer.noise * self.random.standard_normal(frame.shape)
        if fresh is None:
            self.frames[:, 1:] = self.frames[:, :-1]
            self.frames[:, 0] = frame
        else:
            self.frames[fresh] = frame[fresh, None]

    def observe(self) -> Array:
        """What the robots see now, newest first, (B, n)."""
        return self.frames.reshape(self.count, -1).copy()

    def advance(self, action: Array) -> Advance:
        """One control step under actions (B, nj), which are clipped to [-1, 1].

        Raises:
            NotFinite: a state, an observation or an action is no finite number; says which.
        """
        task, start, before = self.task, self.seen, self.action
        check_finite("state", self.state, self.time)
        self.observer.check(self.frames, self.time)
        check_finite("action", action, self.time)
        action = np.clip(action, -1.0, 1.0)
        scale = task.action_scale
        plant = Plant(*(part.copy() for part in self.plant)) if self.automatic else self.plant
        step = self.steps(
            self.state,
            task.nominal + scale * action,
            task.nominal + scale * before,
            plant,
            self.impulse,
        )
        check_finite("state", step.state, self.time)
        period = task.gait.period if task.gait else 1.0
        self.state, self.impulse, self.action = step.state.copy(), step.impulse, action.copy()
        self.phase = (self.phase + task.control_step / period) % 1.0
        self.age += 1
        self.time += 1
        fell = self._fallen(features(step.state))
        ended = fell | (self.age >= task.episode_steps)
        return Advance(
            start, step.state, step, plant, self.command.copy(), action, before, self.phase.copy(),
            fell, ended,
        )  # fmt: skip

    def renew(self, advance: Advance) -> Array:
        """Pushes, new commands and new episodes after a step; returns what was observed (B, n)
        before episodes began anew."""
        task, B = self.task, self.count
        if not self.automatic:
            self._look(None)
            return self.observe()
        self.falls += int(advance.fell.sum())
        push = task.randomization.push
        if push:
            hit = self.random.random(B) < task.control_step / task.randomization.push_interval
            v = BASE_Q + self.action_size
            self.state[:, v : v + 2] += hit[:, None] * self.random.uniform(-push, push, (B, 2))
        change = self.random.random(B) < task.control_step / task.command_interval
        if change.any():
            self.command[change] = draw_commands(task, int(change.sum()), self.random)
        self._look(None)
        last = self.observe()
        self.begin(advance.ended)
        return last

    def step(self, action: Array) -> Outcome:
        """One control step with its cost, for learners that need no gradient; see `Outcome`."""
        a = self.advance(action)
        cost = self.cost(a.state, a.action, a.before, a.command, a.phase)
        last = self.renew(a)
        timed_out = a.ended & ~a.fell
        return Outcome(self.observe(), cost.total, cost.terms, a.fell, timed_out, last)

    def _fallen(self, f: Features) -> Bools:
        """Whether the base is low or tilted, or a knee is on the ground."""
        fell: Bools = (f.height < LOW * self.task.height) | (f.up[:, 2] < UPRIGHT)
        if self.legs.knees_above(f.height - KNEE_CLEARANCE, f.up).all():
            return fell
        knees = f.height[:, None] + self.legs.knee_heights(f.joints, f.up)
        return fell | (knees < KNEE_CLEARANCE).any(axis=1)

    def arrays(self) -> dict[str, Array]:
        """All that the batch remembers but its random numbers, to be saved."""
        kept = {name: getattr(self, name) for name in REMEMBERED}
        return kept | {f"plant_{name}": part for name, part in self.plant._asdict().items()}

    def counters(self) -> dict[str, Any]:
        """Falls, control steps, and the state of the random numbers, as JSON can say it."""
        return {"falls": self.falls, "time": self.time, "random": self.random.bit_generator.state}

    def restore(self, arrays: Mapping[str, Array], counters: Mapping[str, Any]) -> None:
        """Continue where `arrays` and `counters` were taken."""
        for name in REMEMBERED:
            getattr(self, name)[...] = arrays[name]
        for name, part in self.plant._asdict().items():
            part[...] = arrays[f"plant_{name}"]
        self.falls, self.time = int(counters["falls"]), int(counters["time"])
        self.random.bit_generator.state = counters["random"]
        self.seen = features(self.state)
