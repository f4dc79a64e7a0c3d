"""Dynamics learned from motions: Lagrangian and Hamiltonian networks, and a plain one.

Nothing here is imported before it is used: the models need PyTorch (the extra `learn`).

    motions       what is learned from: q, v, a, tau, from arrays or a file
    network       a multilayer perceptron with first and second derivatives along given directions
    shape         how large a model's networks are, and the units in which it counts
    model         inverse, forward and energy models behind one interface, with numpy arrays
    cholesky      a positive definite matrix from a network
    lagrangian    structured (mass matrix and potential) and black-box Lagrangians
    hamiltonian   the same with momenta
    plain         two networks without any physics
    model_file    a model as one file of plain arrays
    system        a structured Lagrangian in the native core: steps, DDP, MPC, contact
"""
