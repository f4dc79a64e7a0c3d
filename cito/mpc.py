"""Model predictive control: an optimal-control problem, solved again from every measured state.

    plan = controller.update(t, x)      x_0 .. x_N, u_0 .. u_{N-1}, K_0 .. K_{N-1} from t + delay on
    u = plan.control(t', x')            at any rate, until the next plan

    predict    x at the time at which the new plan will apply, under the plan in force
    shift      that plan by the time that has passed, and roll it out closed loop from there
    improve    a few DDP iterations under a contact gradient, within the budget; where no step
               lowers the cost, the full one is followed for a while, and the best is kept
    polish     at rest, by the exact gradient; what is shifted next is the plan before that,
               lest the search stay in the nearest local optimum
    keep       the old plan where nothing finite came out

The controller owns no clock: time is an argument, and a budget is measured by a function that is
given. Equal calls return equal plans.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.gradients import Exact, Gradient
from cito.dynamics.types import Array, as_array, as_vector, duration, positive, whole_number
from cito.mpc_gradients import as_gradients, default_gradients
from cito.mpc_iteration import Iteration
from cito.plan import Hold, Plan
from cito.problems.objective import Objective
from cito.problems.problem import Leashed, Problem, as_problem
from cito.solvers.search import Iterate, Neighbourhood, closed_loop, roll_out

Target = Problem | Callable[[float], Problem]
CALM = 0.05  # relative change of the cost between updates below which nothing goes on
SETTLED = 10  # updates in a row after which a calm robot is taken to have come to rest
SURPRISE = 1.2  # times the last plan's cost above which what is left of it meets competitors


class UpdateStatus(Enum):
    """How an update ended."""

    IMPROVED = "The plan was improved."
    STATIONARY = "The shifted plan stands: no gradient lowers its cost."
    BUDGET = "The budget was spent before the shifted plan was improved."
    FAILED = "Nothing finite came out: the previous plan stays in force."


class Update(NamedTuple):
    """What an update did: its iterations, the costs before and after, the last step's gradient."""

    status: UpdateStatus
    iterations: int
    warm_cost: float
    cost: float
    gradient: str


class MPC:
    """A receding-horizon controller.

    Args:
        problem: what to solve at every update, its costs as they are seen from the time at which
            the plan will apply, or a function of the time of measurement [s] that returns it; its
            dynamics, horizon and limits must not change. `start` is replaced.
        iterations: DDP iterations in an update.
        first_iterations: the same where there is no plan yet.
        gradient: one contact gradient, several to choose from, or None: `default_gradients`. Each
            iteration takes the first that lowers the cost. By default plans at rest are polished
            by the exact one: a wide kernel stays a per cent or two above the cost of standing.
        delay: from measurement to the moment at which the plan applies [s].
        uphill_steps: full steps in a row that may be followed although they cost more: a foot often
            lifts off only after its controls have grown for a few iterations. 0: monotone.
        hold: what to do beyond the end of the last plan, or at once, where repeating the last
            control costs more than the plan foresaw; None: only repeat it.
        budget: time that an update may take before it begins no further iteration [s]. One is
            always made: shifted alone, a plan does not know what moves. Nor does it bind the first
            update, before which nothing goes on.
        clock: measures the budget; wall clock by default.
    """

    def __init__(
        self,
        problem: Target,
        iterations: int = 2,
        *,
        first_iterations: int = 20,
        gradient: Gradient | Sequence[Gradient] | None = None,
        uphill_steps: int = 4,
        delay: float = 0.0,
        hold: Hold | None = None,
        budget: float = np.inf,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._target = problem
        first = as_problem(problem(0.0) if callable(problem) else problem)
        self.iterations = whole_number("iterations", iterations, 1)
        self.first_iterations = whole_number("first_iterations", first_iterations, 1)
        self.uphill_steps = whole_number("uphill_steps", uphill_steps, 0)
        self.delay = positive("delay", delay, allow_zero=True)
        self.budget = duration("budget", budget)
        self.dynamics, self.horizon, self.hold = first.dynamics, first.horizon, hold
        longest = self.horizon * self.dynamics.time_step
        if self.delay > longest:
            raise ValueError(
                f"`delay` must be within a plan of {longest:g} s, got {self.delay:g} s"
            )
        if hold is not None and not isinstance(hold, Hold):
            raise ValueError(f"`hold` must be a Hold or None, got {hold!r:.80}")
        if not callable(clock):
            raise ValueError(f"`clock` must be a function that returns seconds, got {clock!r:.80}")
        self._given = as_gradients(gradient)
        self._clock = clock
        self._objective: tuple[Problem, Objective] | None = None
        self.reset()

    def reset(self) -> None:
        """Forget the plan: the next update starts from the problem's initial controls."""
        self.plan: Plan | None = None
        self._followed: Plan | None = None  # the last plan, before it was polished
        self.last: Update | None = None
        self._relief: Array | None = None  # of a reference that ran ahead
        self._calm = 0
        self._iteration = Iteration()
        self._gradients = self._given

    def update(self, t: float, x: ArrayLike) -> Plan:
        """The plan from time t + delay on, given the state x (nx,) measured at time t [s].

        `last` says how it went. Where nothing finite came out the previous plan is returned. At a
        time before that of the plan in force, as after a jump of a clock, it is taken as it starts.

        Raises:
            ValueError: t or x not finite, x of the wrong shape.
            ArithmeticError: nothing finite came out and there is no previous plan.
        """
        deadline = np.inf if self.plan is None else self._clock() + self.budget
        t = float(as_array("t", t, ()))
        apply_time = t + self.delay
        measured = as_vector("x", x, self.dynamics.nx)
        problem, objective = self._posed(t, measured, apply_time)
        start = self._predicted(t, measured)
        problem = problem.started_at(start)
        warm = self._warm_start(apply_time, problem, objective)
        if warm is None:
            if self.plan is None:
                raise ArithmeticError("no finite trajectory from the measured state, and no plan")
            self.last = Update(UpdateStatus.FAILED, 0, np.inf, self.plan.cost, "")
            return self.plan
        self._gradients = self._gradients or default_gradients(problem, warm[0])
        rests = self._calm >= SETTLED and not self._given
        local = Neighbourhood(problem, objective, warm[0])
        local, feedback = self._descend(local, warm[1], deadline, int(rests))
        iterate = local.iterate
        before = np.inf if self._followed is None else self._followed.cost
        calm = abs(iterate.cost - before) <= CALM * abs(iterate.cost)
        self._calm = self._calm + 1 if calm else 0
        self._followed = self.plan = self._planned(apply_time, problem, iterate, feedback)
        if rests and calm and self._clock() < deadline:
            self._polish(local, apply_time)
        return self.plan

    def _polish(self, neighbourhood: Neighbourhood, t: float) -> None:
        """Put in force what one exact iteration makes of the plan, where that is better."""
        step = self._iteration.improve(neighbourhood, (Exact(),), True)
        if step.better is not None and step.policy is not None and self.last is not None:
            feedback = step.policy.feedback
            self.plan = self._planned(t, neighbourhood.problem, step.better, feedback)
            self.last = self.last._replace(cost=self.plan.cost, gradient=step.gradient)

    def _descend(
        self, local: Neighbourhood, feedback: Array, deadline: float, spared: int
    ) -> tuple[Neighbourhood, Array]:
        """The best trajectory that the iterations but for those `spared` find, with its local
        models as far as they were formed, and its gains; `last` tells how."""
        first = best = local
        uphill = 0
        count = self.first_iterations if self.plan is None else max(self.iterations - spared, 1)
        status, done, name = UpdateStatus.BUDGET, 0, ""
        while done < count and (done == 0 or self._clock() < deadline):
            step = self._iteration.improve(local, self._gradients, self.plan is not None)
            done += 1
            if local is best and step.policy is not None:
                feedback = step.policy.feedback
            if step.better is None:
                status = UpdateStatus.STATIONARY if not name else status
                if uphill == self.uphill_steps or not step.worth_following(best.iterate.cost):
                    break
                assert step.full is not None
                local, uphill = local.moved(step.full), uphill + 1
                continue
            local = local.moved(step.better)
            if local.iterate.cost < best.iterate.cost:
                assert step.policy is not None
                best, feedback, uphill = local, step.policy.feedback, 0
                status, name = UpdateStatus.IMPROVED, step.gradient
        self.last = Update(status, done, first.iterate.cost, best.iterate.cost, name)
        return best, feedback

    def _posed(self, t: float, x: Array, apply_time: float) -> tuple[Problem, Objective]:
        """The problem at time t, its costs seen from `apply_time`, and its objective, which is kept
        while both stay. A reference on a leash does not run away from x."""
        base = as_problem(self._target(t) if callable(self._target) else self._target)
        if base.horizon != self.horizon or base.dynamics is not self.dynamics:
            raise ValueError("`problem` must keep its dynamics and its horizon")
        if isinstance(base.costs_at, Leashed):
            self._relief = base.costs_at.relieved(t, x, self._relief)
        posed = base.seen_from(apply_time, self._relief)
        if self._objective is None or self._objective[0].costs is not posed.costs:
            self._objective = posed, Objective(posed)
        return self._objective

    def _predicted(self, t: float, x: Array) -> Array:
        """The state at time t + delay, if the plan in force is followed from x until then."""
        plan, h = self.plan, self.dynamics.time_step
        if plan is None or self.delay == 0.0:
            return x
        whole, rest = divmod(self.delay, h)
        for i in range(int(whole)):
            now = t + i * h
            x = self.dynamics.rollout(x, plan.control(now, x)[None]).states[1]
        if rest > 1e-6 * h:  # part of a step: that part of its displacement
            following = self.dynamics.rollout(x, plan.control(t + whole * h, x)[None]).states[1]
            x = self.dynamics.integrate(x, rest / h * self.dynamics.difference(x, following))
        return x

    def _warm_start(
        self, t: float, problem: Problem, objective: Objective
    ) -> tuple[Iterate, Array] | None:
        """The cheapest closed-loop rollout of what is left of the plan, and its gains.

        Its end is bridged by repeating the last control, which is nearly always best; the other
        ways to go on are tried where that costs more than the plan foresaw.
        """
        foreseen = -np.inf if self._followed is None else SURPRISE * self._followed.cost
        best: tuple[Iterate, Array] | None = None
        for X, U, K, impulses in self._ways_on(t):
            iterate = closed_loop(problem, objective, X, U, K, impulses)
            if iterate is not None and (best is None or iterate.cost < best[0].cost):
                best = iterate, K
            if best is not None and best[0].cost <= foreseen:
                break
        if best is None:
            assert problem.initial_controls is not None
            cold = roll_out(problem, objective, problem.initial_controls)
            K = np.zeros((self.horizon, self.dynamics.nu, self.dynamics.ndx))
            best = None if cold is None else (cold, K)
        return best

    def _ways_on(self, t: float) -> Iterator[tuple[Array, Array, Array, Array | None]]:
        """States, controls, gains, impulses: the plan shifted to time t and bridged in each way,
        then holding on from the first knot, for states that the plan did not foresee."""
        plan = self._followed
        if plan is not None:
            for hold in (None,) if self.hold is None else (None, self.hold):
                yield plan.shifted(max(t, plan.start_time), hold)
        if self.hold is not None:
            N, held = self.horizon, self.hold
            X, U, K = (
                np.tile(part, (count, *(1,) * np.ndim(part)))
                for part, count in ((held.state, N + 1), (held.control, N), (held.gains, N))
            )
            yield X, U, K, None

    def _planned(self, t: float, problem: Problem, iterate: Iterate, feedback: Array) -> Plan:
        rollout = iterate.rollout
        return Plan(
            self.dynamics,
            t,
            rollout.states,
            rollout.controls,
            feedback,
            rollout.impulses,
            rollout.modes,
            iterate.cost,
            problem.control_lower,
            problem.control_upper,
        )
