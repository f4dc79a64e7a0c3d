"""What cito measures: each benchmark is one module and one command, `cito bench NAME`.

A benchmark module has `run(quick) -> rows`, each row a mapping of plain values. Where rows take
long it also has `rows(quick)`, which yields them one by one, and `total(quick)`, their number;
`tables(rows)` are the (headers, cells) that a person reads. With `WIDTHS` of the columns of its one
table, rows are printed one by one where no terminal sees them.
"""

from __future__ import annotations

BENCHMARKS = {
    "planar": "cito.benchmarks.planar",
    "random": "cito.benchmarks.random_suite",
    "contact": "cito.benchmarks.contact",
    "ddp": "cito.benchmarks.ddp",
    "reference": "cito.benchmarks.reference",
    "demonstrations": "cito.benchmarks.demonstrations",
    "articulated": "cito.benchmarks.articulated",
    "peers": "cito.benchmarks.peers",
    "gradients": "cito.benchmarks.gradients",
    "gradient-tuning": "cito.benchmarks.gradient_tuning",
    "mpc": "cito.benchmarks.mpc",
    "adjoint": "cito.benchmarks.adjoint",
    "recover": "cito.benchmarks.recover",
    "derivatives": "cito.benchmarks.derivatives",
    "fuzz": "cito.benchmarks.fuzz_robots",
    "lagrangian": "cito.benchmarks.lagrangian",
    "soft-body": "cito.benchmarks.soft_body",
    "rl-gradients": "cito.benchmarks.rl_gradients",
    "kills": "cito.benchmarks.training_kills",
}
SUMMARIES = {
    "planar": "every gradient and solver on the three planar tasks, against the proven optimum",
    "random": "each method on 100 problems drawn around these tasks, against their optima",
    "contact": "the contact kernels: how often they solve, how well, how fast",
    "ddp": "what one iteration of DDP costs, and where the time goes",
    "reference": "time to a proof, and whether independent solvers find the same",
    "demonstrations": "throwing, hitting and estimating by gradient, against CMA-ES",
    "articulated": "terms, steps, Jacobians and adjoints of the shipped robots, microseconds each",
    "peers": "the step and its Jacobians beside MuJoCo, Crocoddyl and Pinocchio",
    "gradients": "each contact gradient on many tasks: cost, time, error, variance",
    "gradient-tuning": "settings of learning for each contact gradient, by the same small search",
    "mpc": "base poses in MuJoCo's world, beside iLQR on MuJoCo's own model and Crocoddyl's trot",
    "adjoint": "memory and time of the gradient of a long motion, beside PyTorch, JAX and CasADi",
    "recover": "a humanoid pushed in eight directions: which gradients find the steps it needs",
    "derivatives": "f_x, f_u of every robot in every contact mode, against finite differences",
    "fuzz": "1000 broken robot files: refused with one sentence, or loaded; never a crash",
    "lagrangian": "learned Lagrangian and Hamiltonian models: errors, energy, and control by them",
    "soft-body": "soft bodies: derivatives, solve times, fields that match shapes on any mesh",
    "rl-gradients": "reinforcement learning with the simulator's derivatives: samples it takes",
    "kills": "training that is killed at random moments and goes on, against one that is not",
}
