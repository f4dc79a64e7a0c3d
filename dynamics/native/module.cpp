// The Python module cito.dynamics._native: each binding file adds its part.
#include "bindings.hpp"

namespace nb = nanobind;

NB_MODULE(_native, m) {
  m.doc() = "Native core of cito: contact problems, steps, transitions, rollouts, Riccati recursion.";
  m.attr("isa") = cito::kernels.isa;
  // Objects that are still referenced when the interpreter ends are no concern of the user's.
  nb::set_leak_warnings(false);
  cito::bind_contact(m);
  cito::bind_system(m);
  cito::bind_adjoint(m);
  cito::bind_symbolic(m);
  cito::bind_solver(m);
  cito::bind_shapes(m);
  cito::bind_tree(m);
  cito::bind_soft(m);
}
