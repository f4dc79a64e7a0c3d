// Points of soft bodies: nearest rotations and their derivatives, see soft.inc. Matrices are (d, d, m), d = 2 or 3.
#include <nanobind/stl/optional.h>

#include <algorithm>

#include "bindings.hpp"

namespace cito {
namespace {

std::size_t checked_matrices(const char *name, const In<3> &X) {
  const std::size_t d = X.shape(0);
  if (d != 2 && d != 3) refuse(name, "have shape (2, 2, m) or (3, 3, m)");
  check_shape(name, X, {d, d, X.shape(2)});
  return d;
}

// R, P = F - R A (d,d,m) and |P|^2 / 2 (m); `near` (d,d,m) are rotations to start from.
nb::tuple soft_local_step(In<3> F, In<3> A, Maybe<3> near) {
  const std::size_t d = checked_matrices("F", F), m = F.shape(2);
  check_shape("A", A, {d, d, m});
  check_shape("near", near, {d, d, m});
  double *R, *P, *psi;
  nb::object o_R = make_array<double>({d, d, m}, &R, !near), o_P = make_array<double>({d, d, m}, &P, false),
             o_psi = make_array<double>({m}, &psi, false);
  if (near) std::copy_n(near->data(), d * d * m, R);
  else
    for (std::size_t i = 0; i < d; ++i) std::fill_n(R + i * (d + 1) * m, m, 1.0);
  {
    nb::gil_scoped_release release;
    (d == 2 ? kernels.soft_local_2 : kernels.soft_local_3)(m, F.data(), A.data(), R, P, psi);
  }
  return nb::make_tuple(o_R, o_P, o_psi);
}

// The gains of R, (1,m) or (6,m): the upper triangle of (tr(S) I - S)^-1, row by row.
nb::object soft_gains(In<3> F, In<3> A, In<3> R) {
  const std::size_t d = checked_matrices("F", F), m = F.shape(2);
  check_shape("A", A, {d, d, m});
  check_shape("R", R, {d, d, m});
  double *G;
  nb::object o_G = make_array<double>({d == 2 ? 1u : 6u, m}, &G, false);
  nb::gil_scoped_release release;
  (d == 2 ? kernels.soft_gains_2 : kernels.soft_gains_3)(m, F.data(), A.data(), R.data(), G);
  return o_G;
}

// dR in the direction dM = Z A, or Z - dR A, (d,d,m).
nb::object soft_derivative(In<3> Z, In<3> A, In<3> R, In<2> gains, bool stress) {
  const std::size_t d = checked_matrices("Z", Z), m = Z.shape(2);
  check_shape("A", A, {d, d, m});
  check_shape("R", R, {d, d, m});
  check_shape("gains", gains, {d == 2 ? 1u : 6u, m});
  double *out;
  nb::object o_out = make_array<double>({d, d, m}, &out, false);
  nb::gil_scoped_release release;
  (d == 2 ? kernels.soft_derivative_2 : kernels.soft_derivative_3)(m, Z.data(), A.data(), R.data(), gains.data(),
                                                                   stress, out);
  return o_out;
}

}  // namespace

void bind_soft(nb::module_ &m) {
  m.def("soft_local_step", &soft_local_step, nb::arg("F"), nb::arg("A"), nb::arg("near").none());
  m.def("soft_gains", &soft_gains, nb::arg("F"), nb::arg("A"), nb::arg("R"));
  m.def("soft_derivative", &soft_derivative, nb::arg("Z"), nb::arg("A"), nb::arg("R"), nb::arg("gains"),
        nb::arg("stress"));
}

}  // namespace cito
