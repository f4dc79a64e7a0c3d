// Whole motions under parameters of their own, and their transposes.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "time_stepping.hpp"

namespace cito {
namespace {

// Friction (m,nc) and theta (m,np) of m motions, each by default the model's.
struct Varied {
  const TimeStepping &model;
  const Maybe<2> &friction, &theta;

  void check(std::size_t m) const {
    const System &s = model.handle.system;
    check_shape("friction", friction, {m, std::size_t(s.nc)});
    check_shape("theta", theta, {m, std::size_t(s.np)});
  }
  StepContext context(std::size_t i) const {
    StepContext ctx = model.context();
    if (friction) ctx.contacts.mu = friction->data() + i * friction->shape(1);
    if (theta) ctx.theta = theta->data() + i * theta->shape(1);
    return ctx;
  }
};

// m open-loop motions: states (m,N+1,nx), impulses, velocities (m,N,n), modes (m,N,nc), residual (m). The first solve
// starts at `previous` (m,n), the impulse of the step before, or cold.
nb::tuple simulate(const TimeStepping &model, In<2> start, In<3> controls, Maybe<2> previous, Maybe<2> friction,
                   Maybe<2> theta, int threads) {
  const System &s = model.handle.system;
  const Varied world = {model, friction, theta};
  const std::size_t m = start.shape(0), N = controls.shape(1), nx = s.nq + s.nv, nu = s.nu, n = s.n, nc = s.nc;
  checked_count("start", m), checked_count("controls", N);
  check_extent("states", {N + 1, nx});
  check_extent("impulses", {N, n});
  check_shape("start", start, {m, nx});
  check_shape("controls", controls, {m, N, nu});
  check_shape("previous", previous, {m, n});
  world.check(m);
  double *states, *lambda, *sigma, *residual;
  int *modes;
  nb::object o_states = make_array<double>({m, N + 1, nx}, &states), o_lambda = make_array<double>({m, N, n}, &lambda),
             o_sigma = make_array<double>({m, N, n}, &sigma), o_modes = make_array<int>({m, N, nc}, &modes),
             o_residual = make_array<double>({m}, &residual);
  {
    nb::gil_scoped_release release;
    parallel_for(int(m), threads, kernels.step_workspace(s) + N * nu, [&](int i, Arena arena) {
      RolloutInput in = {};
      in.N = int(N);
      in.previous = previous ? previous->data() + i * n : nullptr;
      residual[i] = kernels.rollout(world.context(i), in, 0, start.data() + i * nx, controls.data() + i * N * nu,
                                    states + i * (N + 1) * nx, arena.take(N * nu), lambda + i * N * n,
                                    sigma + i * N * n, modes + i * N * nc, arena);
    });
  }
  return nb::make_tuple(o_states, o_lambda, o_sigma, o_modes, o_residual);
}

// Transposed motions from knot `first` on: g_states (m,N+1,ndx) -> g_start (m,ndx), g_controls (m,N,nu), and
// g_theta (m,np), g_friction (m,nc), which start at what `g_theta` and `g_friction` hold. All are NaN of a motion that
// left the finite numbers.
nb::tuple rollout_vjp(const TimeStepping &model, In<3> states, In<3> controls, In<3> impulses, In<3> velocities,
                      IntIn<3> modes, In<3> g_states, const Gradient &gradient, Maybe<2> friction, Maybe<2> theta,
                      std::uint64_t first, In<2> g_theta, In<2> g_friction, int threads) {
  const System &s = model.handle.system;
  const Varied world = {model, friction, theta};
  const std::size_t m = states.shape(0), N = controls.shape(1), nx = s.nq + s.nv, ndx = 2 * s.nv, nu = s.nu, n = s.n,
                    nc = s.nc, np = s.np;
  checked_count("states", m), checked_count("controls", N);
  check_shape("states", states, {m, N + 1, nx});
  check_shape("controls", controls, {m, N, nu});
  check_shape("impulses", impulses, {m, N, n});
  check_shape("velocities", velocities, {m, N, n});
  check_shape("modes", modes, {m, N, nc});
  check_range("modes", modes, separating, clamping);
  check_shape("g_states", g_states, {m, N + 1, ndx});
  check_shape("g_theta", g_theta, {m, np});
  check_shape("g_friction", g_friction, {m, nc});
  world.check(m);
  double *g_start, *g_controls, *theta_sum, *friction_sum;
  nb::object o_start = make_array<double>({m, ndx}, &g_start), o_controls = make_array<double>({m, N, nu}, &g_controls),
             o_theta = make_array<double>({m, np}, &theta_sum), o_friction = make_array<double>({m, nc}, &friction_sum);
  std::copy_n(g_theta.data(), m * np, theta_sum);
  std::copy_n(g_friction.data(), m * nc, friction_sum);
  {
    nb::gil_scoped_release release;
    parallel_for(int(m), threads, kernels.step_workspace(s), [&](int i, Arena arena) {
      const TransposedRollout in = {int(N), first, states.data() + i * (N + 1) * nx, controls.data() + i * N * nu,
                                    impulses.data() + i * N * n, velocities.data() + i * N * n,
                                    modes.data() + i * N * nc, g_states.data() + i * (N + 1) * ndx};
      double *const out[4] = {g_start + i * ndx, g_controls + i * N * nu, theta_sum + i * np, friction_sum + i * nc};
      const std::size_t size[4] = {ndx, N * nu, np, nc};
      const double *last = in.states + N * nx;  // NaN if any state is
      if (std::all_of(last, last + nx, [](double x) { return std::isfinite(x); }) &&
          kernels.rollout_vjp(world.context(i), in, gradient, out[0], out[1], out[2], out[3], arena))
        return;
      for (int j = 0; j < 4; ++j) std::fill_n(out[j], size[j], std::numeric_limits<double>::quiet_NaN());
    });
  }
  return nb::make_tuple(o_start, o_controls, o_theta, o_friction);
}

// y' r_q + z' Jw_q + zeta' phi_q (nv), y' r_v (nv) and y' r_theta + z' Jw_theta + zeta' phi_theta (np) at (q, v), see
// system_derivatives.
nb::tuple transposed_derivatives(const SystemHandle &h, Maybe<1> theta, In<1> q, In<1> v, In<1> a, In<1> u, In<1> f,
                                 In<1> w, In<1> y, In<1> z, In<1> zeta) {
  const System &s = h.system;
  const std::size_t nv = s.nv, n = s.n, np = s.np;
  if (!s.terms) refuse("system", "have dynamics, got a space of states and controls");
  check_shape("theta", theta, {np});
  check_shape("q", q, {std::size_t(s.nq)});
  check_shape("v", v, {nv});
  check_shape("a", a, {nv});
  check_shape("u", u, {std::size_t(s.nu)});
  check_shape("f", f, {n});
  check_shape("w", w, {nv});
  check_shape("y", y, {nv});
  check_shape("z", z, {n});
  check_shape("zeta", zeta, {std::size_t(s.nc)});
  double *out[3];
  nb::object o[3] = {make_array<double>({nv}, out), make_array<double>({nv}, out + 1), make_array<double>({np}, out + 2)};
  Workspace work(kernels.step_workspace(s));
  Arena arena = work.arena();
  double *M = arena.take(nv * nv), *c = arena.take(nv), *B = arena.take(nv * s.nu), *J = arena.take(n * nv),
         *phi = arena.take(s.nc);
  const Arena kept = kernels.take_kept(s, arena);
  s.terms(s.self, data_or_null(theta), q.data(), v.data(), M, c, B, J, phi, kept);
  kernels.transposed_derivatives(s, data_or_null(theta), q.data(), v.data(), a.data(), u.data(), f.data(), w.data(),
                                 y.data(), z.data(), zeta.data(), out[0], out[1], out[2], kept, arena);
  return nb::make_tuple(o[0], o[1], o[2]);
}

// Gradients at states x (K,nx): from coordinates (K,nx) to the tangent space (K,ndx), or back.
nb::object move_gradient(const SystemHandle &h, In<2> x, In<2> g, bool to_tangent) {
  const System &s = h.system;
  const std::size_t K = x.shape(0), nq = s.nq, nv = s.nv, nx = nq + nv, ndx = 2 * nv;
  const std::size_t from = to_tangent ? nx : ndx, to = to_tangent ? ndx : nx;
  check_shape("x", x, {K, nx});
  check_shape("g", g, {K, from});
  double *out;
  nb::object result = make_array<double>({K, to}, &out);
  auto *move = to_tangent ? s.to_tangent : s.to_coordinates;
  for (std::size_t k = 0; k < K; ++k) {
    const double *g_k = g.data() + k * from;
    double *out_k = out + k * to;
    if (move)
      move(s.self, x.data() + k * nx, g_k, out_k);
    else
      std::copy_n(g_k, nv, out_k);
    std::copy_n(g_k + from - nv, nv, out_k + to - nv);
  }
  return result;
}

}  // namespace

void bind_adjoint(nb::module_ &m) {
  m.def("simulate", &simulate, nb::arg("model"), nb::arg("start"), nb::arg("controls"), nb::arg("previous").none(),
        nb::arg("friction").none(), nb::arg("theta").none(), nb::arg("threads"));
  m.def("transposed_derivatives", &transposed_derivatives, nb::arg("system"), nb::arg("theta").none(), nb::arg("q"),
        nb::arg("v"), nb::arg("a"), nb::arg("u"), nb::arg("f"), nb::arg("w"), nb::arg("y"), nb::arg("z"), nb::arg("zeta"));
  m.def("move_gradient", &move_gradient, nb::arg("system"), nb::arg("x"), nb::arg("g"), nb::arg("to_tangent"));
  m.def("rollout_vjp", &rollout_vjp, nb::arg("model"), nb::arg("states"), nb::arg("controls"), nb::arg("impulses"),
        nb::arg("velocities"), nb::arg("modes"), nb::arg("g_states"), nb::arg("gradient"), nb::arg("friction").none(),
        nb::arg("theta").none(), nb::arg("first"), nb::arg("g_theta"), nb::arg("g_friction"), nb::arg("threads"));
}

}  // namespace cito
