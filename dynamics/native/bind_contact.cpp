// Python face of the contact kernels: batches of contact problems of one layout.
#include <nanobind/stl/optional.h>

#include "bindings.hpp"

namespace cito {
namespace {

struct Layout {
  std::vector<int> dim, row;
  int n = 0;
  explicit Layout(const IntIn<1> &dims) { n = read_layout("dims", dims, dim, row); }
  Contacts contacts(const double *mu) const { return {int(dim.size()), n, dim.data(), row.data(), mu}; }
};

// What all contact functions take: m problems of one layout, checked.
struct Problems {
  Layout layout;
  int m;
  const double *A, *b, *mu;
  Problems(const IntIn<1> &dims, const In<3> &A_, const In<2> &b_, const In<2> &mu_)
      : layout(dims), m(checked_count("b", b_.shape(0))), A(A_.data()), b(b_.data()), mu(mu_.data()) {
    const std::size_t rows = m, n = layout.n, nc = layout.dim.size();
    check_shape("A", A_, {rows, n, n});
    check_shape("b", b_, {rows, n});
    check_shape("mu", mu_, {rows, nc});
  }
  void check_solution(const In<2> &impulse, const In<2> &velocity, const IntIn<2> &modes) const {
    const std::size_t rows = m, n = layout.n;
    check_shape("impulse", impulse, {rows, n});
    check_shape("velocity", velocity, {rows, n});
    check_modes(modes, {rows, layout.dim.size()});
  }
};

// work(k, arena) for k = 0..m-1 without the interpreter's lock.
void for_each(const Problems &p, int threads, const std::function<void(std::size_t, Arena)> &work) {
  nb::gil_scoped_release release;
  parallel_for(p.m, threads, kernels.contact_workspace(int(p.layout.dim.size()), p.layout.n), work);
}

nb::tuple hard_solve(IntIn<1> dims, In<3> A, In<2> b, In<2> mu, Maybe<2> warm, int threads) {
  const Problems problems(dims, A, b, mu);
  const Layout &layout = problems.layout;
  const std::size_t m = problems.m, n = layout.n, nc = layout.dim.size();
  check_shape("warm", warm, {m, n});
  double *lambda, *sigma, *residual;
  int *mode, *status, *sweeps;
  nb::object out[] = {make_array({m, n}, &lambda), make_array({m, n}, &sigma), make_array({m, nc}, &mode),
                      make_array({m}, &status), make_array({m}, &residual), make_array({m}, &sweeps)};
  const double *pA = A.data(), *pb = b.data(), *pmu = mu.data(), *pw = data_or_null(warm);
  for_each(problems, threads, [&](std::size_t k, Arena arena) {
    HardInfo info;
    kernels.hard_solve(layout.contacts(pmu + k * nc), pA + k * n * n, pb + k * n, pw ? pw + k * n : nullptr, lambda + k * n,
                       sigma + k * n, mode + k * nc, &info, arena);
    status[k] = info.status, residual[k] = info.residual, sweeps[k] = info.sweeps;
  });
  return nb::make_tuple(out[0], out[1], out[2], out[3], out[4], out[5]);
}

// Points of the relaxed law from hard solutions (impulse, velocity, modes), with the smoothing eps of ||sigma_T|| if given.
nb::tuple relaxed_solve(IntIn<1> dims, In<3> A, In<2> b, In<2> mu, In<2> impulse, In<2> velocity, IntIn<2> modes,
                        const Gradient &gradient, Maybe<2> smoothing, int threads) {
  const Problems problems(dims, A, b, mu);
  const Layout &layout = problems.layout;
  const std::size_t m = problems.m, n = layout.n, nc = layout.dim.size();
  problems.check_solution(impulse, velocity, modes);
  check_shape("smoothing", smoothing, {m, nc});
  double *lambda, *sigma, *residual;
  int *status, *iterations, *continuations, *fallbacks;
  nb::object out[] = {make_array({m, n}, &lambda), make_array({m, n}, &sigma), make_array({m}, &status),
                      make_array({m}, &residual), make_array({m}, &iterations), make_array({m}, &continuations),
                      make_array({m}, &fallbacks)};
  const double *pA = A.data(), *pb = b.data(), *pmu = mu.data(), *pl = impulse.data(), *ps = velocity.data(),
               *eps = data_or_null(smoothing);
  const int *pm = modes.data();
  for_each(problems, threads, [&](std::size_t k, Arena arena) {
    RelaxedInfo info;
    kernels.relaxed_solve_smoothed(layout.contacts(pmu + k * nc), pA + k * n * n, pb + k * n, pl + k * n, ps + k * n,
                                   pm + k * nc, gradient, eps ? eps + k * nc : nullptr, lambda + k * n, sigma + k * n, &info,
                                   arena);
    status[k] = info.status, residual[k] = info.residual, iterations[k] = info.iterations;
    continuations[k] = info.continuations, fallbacks[k] = info.fallbacks;
  });
  return nb::make_tuple(out[0], out[1], out[2], out[3], out[4], out[5], out[6]);
}

// d lambda / d b and d lambda / d mu; problem k draws the samples of knots[k].
nb::tuple contact_sensitivity(IntIn<1> dims, In<3> A, In<2> b, In<2> mu, In<2> impulse, In<2> velocity, IntIn<2> modes,
                              const Gradient &gradient, nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> knots,
                              int threads) {
  const Problems problems(dims, A, b, mu);
  const Layout &layout = problems.layout;
  const std::size_t m = problems.m, n = layout.n, nc = layout.dim.size();
  problems.check_solution(impulse, velocity, modes);
  check_shape("knots", knots, {m});
  double *D, *D_mu;
  int *status, *iterations, *fallbacks;
  nb::object out[] = {make_array({m, n, n}, &D), make_array({m, n, nc}, &D_mu), make_array({m}, &status),
                      make_array({m}, &iterations), make_array({m}, &fallbacks)};
  const double *pA = A.data(), *pb = b.data(), *pmu = mu.data(), *pl = impulse.data(), *ps = velocity.data();
  const int *pm = modes.data();
  const std::uint64_t *pk = knots.data();
  for_each(problems, threads, [&](std::size_t k, Arena arena) {
    RelaxedInfo info;
    kernels.contact_sensitivity(layout.contacts(pmu + k * nc), pA + k * n * n, pb + k * n, pl + k * n, ps + k * n,
                                pm + k * nc, gradient, pk[k], D + k * n * n, D_mu + k * n * nc, &info, arena);
    status[k] = info.status, iterations[k] = info.iterations, fallbacks[k] = info.fallbacks;
  });
  return nb::make_tuple(out[0], out[1], out[2], out[3], out[4]);
}

}  // namespace

void bind_contact(nb::module_ &m) {
  nb::class_<Gradient>(m, "Gradient")
      .def("__init__",
           [](Gradient *g, int kind, double rho, double delta, bool relative, double v_ref, int samples, double std,
              std::uint64_t seed, double threshold, double eps) {
             if (kind < grad_exact || kind > grad_bundled) refuse("kind", "be from 0 to 5, got " + std::to_string(kind));
             if (samples < 0) refuse("samples", "be >= 0, got " + std::to_string(samples));
             new (g) Gradient{kind, rho, delta, relative, v_ref, samples, std, seed, threshold, eps};
           },
           nb::kw_only(), nb::arg("kind") = 0, nb::arg("rho") = 0., nb::arg("delta") = 0., nb::arg("relative") = false,
           nb::arg("v_ref") = 1., nb::arg("samples") = 0, nb::arg("std") = 0., nb::arg("seed") = 0, nb::arg("threshold") = 0.,
           nb::arg("eps") = 0.)
      .def_ro("kind", &Gradient::kind)
      .def_ro("rho", &Gradient::rho)
      .def_ro("delta", &Gradient::delta)
      .def_prop_ro("relative", [](const Gradient &g) { return g.relative != 0; })
      .def_ro("v_ref", &Gradient::v_ref)
      .def_ro("samples", &Gradient::samples)
      .def_ro("std", &Gradient::std)
      .def_ro("seed", &Gradient::seed)
      .def_ro("threshold", &Gradient::threshold)
      .def_ro("eps", &Gradient::eps);
  m.def("hard_solve", &hard_solve, nb::arg("dims"), nb::arg("A"), nb::arg("b"), nb::arg("mu"), nb::arg("warm").none(),
        nb::arg("threads") = 1);
  m.def("relaxed_solve", &relaxed_solve, nb::arg("dims"), nb::arg("A"), nb::arg("b"), nb::arg("mu"), nb::arg("impulse"),
        nb::arg("velocity"), nb::arg("modes"), nb::arg("gradient"), nb::arg("smoothing").none(), nb::arg("threads") = 1);
  m.def("contact_sensitivity", &contact_sensitivity, nb::arg("dims"), nb::arg("A"), nb::arg("b"), nb::arg("mu"),
        nb::arg("impulse"), nb::arg("velocity"), nb::arg("modes"), nb::arg("gradient"), nb::arg("knots"),
        nb::arg("threads") = 1);
}

}  // namespace cito
