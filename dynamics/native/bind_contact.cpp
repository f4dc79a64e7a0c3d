// Python face of the contact kernels: batches of contact problems of one layout.
#include <algorithm>
#include <cstring>
#include <string>
#include <thread>

#include <nanobind/stl/optional.h>

#include <optional>

#include "bindings.hpp"

namespace cito {
namespace {

struct Layout {
  std::vector<int> dim, row;
  int n = 0;
  Layout(const IntIn<1> &dims) : dim(dims.data(), dims.data() + dims.shape(0)) {
    for (int d : dim) {
      row.push_back(n);
      n += d;
    }
  }
  Contacts contacts(const double *mu) const { return {int(dim.size()), n, dim.data(), row.data(), mu}; }
};

// work(k, arena) for k = 0..count-1 on `threads` threads, without the GIL.
template <class Work> void for_each(std::size_t count, int threads, std::size_t workspace, Work work) {
  nb::gil_scoped_release release;
  const std::size_t parts = std::max<std::size_t>(1, std::min<std::size_t>(threads, count));
  auto part = [&](std::size_t p) {
    Workspace memory(workspace);
    for (std::size_t k = count * p / parts; k < count * (p + 1) / parts; ++k) work(k, memory.arena());
  };
  std::vector<std::thread> pool;
  for (std::size_t p = 1; p < parts; ++p) pool.emplace_back(part, p);
  part(0);
  for (std::thread &t : pool) t.join();
}

nb::tuple hard_solve(IntIn<1> dims, In<3> A, In<2> b, In<2> mu, std::optional<In<2>> warm, int threads) {
  const Layout layout(dims);
  const std::size_t m = A.shape(0), n = layout.n, nc = layout.dim.size();
  double *lambda, *sigma, *residual;
  int *mode, *status, *sweeps;
  nb::object out[] = {make_array({m, n}, &lambda), make_array({m, n}, &sigma), make_array({m, nc}, &mode),
                      make_array({m}, &status), make_array({m}, &residual), make_array({m}, &sweeps)};
  const double *pA = A.data(), *pb = b.data(), *pmu = mu.data(), *pw = warm ? warm->data() : nullptr;
  for_each(m, threads, kernels.contact_workspace(nc, n), [&](std::size_t k, Arena arena) {
    HardInfo info;
    kernels.hard_solve(layout.contacts(pmu + k * nc), pA + k * n * n, pb + k * n, pw ? pw + k * n : nullptr, lambda + k * n,
                       sigma + k * n, mode + k * nc, &info, arena);
    status[k] = info.status, residual[k] = info.residual, sweeps[k] = info.sweeps;
  });
  return nb::make_tuple(out[0], out[1], out[2], out[3], out[4], out[5]);
}

// Points of the relaxed law from hard solutions (impulse, velocity, modes), with the smoothing eps of ||sigma_T|| if given.
nb::tuple relaxed_solve(IntIn<1> dims, In<3> A, In<2> b, In<2> mu, In<2> impulse, In<2> velocity, IntIn<2> modes,
                        const Gradient &gradient, std::optional<In<2>> smoothing, int threads) {
  const Layout layout(dims);
  const std::size_t m = A.shape(0), n = layout.n, nc = layout.dim.size();
  double *lambda, *sigma, *residual;
  int *status, *iterations, *continuations, *fallbacks;
  nb::object out[] = {make_array({m, n}, &lambda), make_array({m, n}, &sigma), make_array({m}, &status),
                      make_array({m}, &residual), make_array({m}, &iterations), make_array({m}, &continuations),
                      make_array({m}, &fallbacks)};
  const double *pA = A.data(), *pb = b.data(), *pmu = mu.data(), *pl = impulse.data(), *ps = velocity.data(),
               *eps = smoothing ? smoothing->data() : nullptr;
  const int *pm = modes.data();
  for_each(m, threads, kernels.contact_workspace(nc, n), [&](std::size_t k, Arena arena) {
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
  const Layout layout(dims);
  const std::size_t m = A.shape(0), n = layout.n, nc = layout.dim.size();
  double *D, *D_mu;
  int *status, *iterations, *fallbacks;
  nb::object out[] = {make_array({m, n, n}, &D), make_array({m, n, nc}, &D_mu), make_array({m}, &status),
                      make_array({m}, &iterations), make_array({m}, &fallbacks)};
  const double *pA = A.data(), *pb = b.data(), *pmu = mu.data(), *pl = impulse.data(), *ps = velocity.data();
  const int *pm = modes.data();
  const std::uint64_t *pk = knots.data();
  for_each(m, threads, kernels.contact_workspace(nc, n), [&](std::size_t k, Arena arena) {
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
