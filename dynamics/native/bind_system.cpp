// Systems, steps, rollouts and linearizations.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "linear_system.hpp"
#include "time_stepping.hpp"

namespace cito {
namespace {

using Model = std::shared_ptr<const TimeStepping>;
template <int D> std::vector<double> to_vector(const In<D> &a) { return {a.data(), a.data() + a.size()}; }

void check_has_terms(const System &s) {
  if (!s.terms) refuse("system", "have dynamics, got a space of states and controls");
}

// States, controls and hard solutions of K steps.
void check_steps(const System &s, std::size_t K, const In<2> &x, const In<2> &u, const In<2> &lambda,
                 const In<2> &sigma, const IntIn<2> &modes) {
  const std::size_t nx = s.nq + s.nv, nu = s.nu, n = s.n, nc = s.nc;
  checked_count("states", K);
  check_shape("states", x, {K, nx});
  check_shape("controls", u, {K, nu});
  check_shape("impulses", lambda, {K, n});
  check_shape("velocities", sigma, {K, n});
  check_modes(modes, {K, nc});
}

SystemHandle linear_system(In<2> M, In<2> K, In<2> D, In<1> c0, In<2> B, In<2> J, In<2> G, In<1> phi0, IntIn<1> dim) {
  auto s = std::make_shared<LinearSystem>();
  const std::size_t nv = checked_size("M", M.shape(0)), nu = checked_size("B", B.shape(1)), nc = dim.size();
  const std::size_t n = read_layout("dims", dim, s->dim, s->row);
  check_shape("M", M, {nv, nv});
  check_shape("K", K, {nv, nv});
  check_shape("D", D, {nv, nv});
  check_shape("c0", c0, {nv});
  check_shape("B", B, {nv, nu});
  check_shape("J", J, {n, nv});
  check_shape("G", G, {nc, nv});
  check_shape("phi0", phi0, {nc});
  s->nv = int(nv), s->nu = int(nu), s->nc = int(nc), s->n = int(n);
  s->M = to_vector<2>(M), s->K = to_vector<2>(K), s->D = to_vector<2>(D), s->c0 = to_vector<1>(c0);
  s->B = to_vector<2>(B), s->J = to_vector<2>(J), s->G = to_vector<2>(G), s->phi0 = to_vector<1>(phi0);
  return LinearSystem::handle(s);
}

// A system that is only a Euclidean space of states and controls (for costs on other dynamics).
SystemHandle euclidean_space(int nv, int nu) {
  if (nv < 0 || nu < 0) refuse(nv < 0 ? "nv" : "nu", "be >= 0, got " + std::to_string(nv < 0 ? nv : nu));
  checked_size("nv", nv), checked_size("nu", nu);
  SystemHandle h;
  h.system.nq = h.system.nv = nv;
  h.system.nu = nu;
  return h;
}

// M, c, B, J, phi at (q, v).
nb::tuple system_terms(const SystemHandle &h, Maybe<1> theta, In<1> q, In<1> v) {
  const System &s = h.system;
  const std::size_t nv = s.nv, nu = s.nu, n = s.n, nc = s.nc;
  check_has_terms(s);
  check_shape("theta", theta, {std::size_t(s.np)});
  check_shape("q", q, {std::size_t(s.nq)});
  check_shape("v", v, {nv});
  double *M, *c, *B, *J, *phi;
  nb::object oM = make_array<double>({nv, nv}, &M), oc = make_array<double>({nv}, &c),
             oB = make_array<double>({nv, nu}, &B), oJ = make_array<double>({n, nv}, &J),
             ophi = make_array<double>({nc}, &phi);
  Workspace work(s.workspace + 64);
  s.terms(s.self, data_or_null(theta), q.data(), v.data(), M, c, B, J, phi, work.arena());
  return nb::make_tuple(oM, oc, oB, oJ, ophi);
}

// r_q, r_v, Jw_q, phi_q, r_theta, Jw_theta, phi_theta at (q, v) with a, u, f, w held.
nb::tuple system_derivatives(const SystemHandle &h, Maybe<1> theta, In<1> q, In<1> v, In<1> a, In<1> u, In<1> f,
                             In<1> w) {
  const System &s = h.system;
  const std::size_t nv = s.nv, nu = s.nu, n = s.n, nc = s.nc, np = s.np;
  check_has_terms(s);
  check_shape("theta", theta, {np});
  check_shape("q", q, {std::size_t(s.nq)});
  check_shape("v", v, {nv});
  check_shape("a", a, {nv});
  check_shape("u", u, {nu});
  check_shape("f", f, {n});
  check_shape("w", w, {nv});
  double *p[7];
  nb::object o[7] = {make_array<double>({nv, nv}, p), make_array<double>({nv, nv}, p + 1),
                     make_array<double>({n, nv}, p + 2), make_array<double>({nc, nv}, p + 3),
                     make_array<double>({nv, np}, p + 4), make_array<double>({n, np}, p + 5),
                     make_array<double>({nc, np}, p + 6)};
  Workspace work(kernels.step_workspace(s));
  Arena arena = work.arena();
  double *M = arena.take(nv * nv), *c = arena.take(nv), *B = arena.take(nv * nu), *J = arena.take(n * nv),
         *phi = arena.take(nc);
  const Arena kept = kernels.take_kept(s, arena);
  s.terms(s.self, data_or_null(theta), q.data(), v.data(), M, c, B, J, phi, kept);
  s.derivatives(s.self, data_or_null(theta), q.data(), v.data(), a.data(), u.data(), f.data(), w.data(), p[0], p[1],
                p[2], p[3], p[4], p[5], p[6], nullptr, kept, arena);
  return nb::make_tuple(o[0], o[1], o[2], o[3], o[4], o[5], o[6]);
}

// damping d, stiffness k, spring k (q - rest), friction (nv) of the forces that the step takes at its end.
nb::tuple system_joint_forces(const SystemHandle &h, Maybe<1> theta, In<1> q) {
  const System &s = h.system;
  check_has_terms(s);
  check_shape("theta", theta, {std::size_t(s.np)});
  check_shape("q", q, {std::size_t(s.nq)});
  double *p[4];
  const std::size_t nv = s.nv;
  nb::object o[4] = {make_array<double>({nv}, p), make_array<double>({nv}, p + 1), make_array<double>({nv}, p + 2),
                     make_array<double>({nv}, p + 3)};
  if (s.joint_forces) s.joint_forces(s.self, data_or_null(theta), q.data(), p[0], p[1], p[2], p[3]);
  return nb::make_tuple(o[0], o[1], o[2], o[3]);
}

// m trajectories: start (m or 1, nx), controls (m or 1, N, nu), alphas (m).
nb::tuple rollout(const TimeStepping &model, In<2> start, In<3> controls, In<1> alphas, Maybe<2> X, Maybe<2> k,
                  Maybe<3> K, Maybe<1> lower, Maybe<1> upper, Maybe<2> gaps, Maybe<2> warm, int threads) {
  const StepContext ctx = model.context();
  const System &s = *ctx.system;
  const std::size_t m = alphas.size(), N = controls.shape(1), nx = s.nq + s.nv, nu = s.nu, n = s.n, nc = s.nc;
  const std::size_t ndx = 2 * s.nv;
  checked_count("alphas", m), checked_count("controls", N);
  check_extent("states", {N + 1, nx});
  check_extent("feedback", {N, nu, K ? ndx : 1});
  check_extent("impulses", {N, n});
  check_shape("start", start, {start.shape(0) == 1 ? 1 : m, nx});
  check_shape("controls", controls, {controls.shape(0) == 1 ? 1 : m, N, nu});
  if (K && !X) refuse("states", "be given with feedback");
  check_shape("states", X, {N + 1, nx});
  check_shape("feedforward", k, {N, nu});
  check_shape("feedback", K, {N, nu, ndx});
  check_shape("lower", lower, {nu});
  check_shape("upper", upper, {nu});
  check_shape("gaps", gaps, {N, ndx});
  check_shape("impulses", warm, {N, n});
  const std::size_t start_stride = start.shape(0) == 1 ? 0 : nx, control_stride = controls.shape(0) == 1 ? 0 : N * nu;
  double *states, *us, *lambda, *sigma, *residual;
  int *modes;
  nb::object o_states = make_array<double>({m, N + 1, nx}, &states), o_us = make_array<double>({m, N, nu}, &us),
             o_lambda = make_array<double>({m, N, n}, &lambda), o_sigma = make_array<double>({m, N, n}, &sigma),
             o_modes = make_array<int>({m, N, nc}, &modes), o_residual = make_array<double>({m}, &residual);
  const RolloutInput in = {int(N), data_or_null(X), data_or_null(k), data_or_null(K), data_or_null(lower),
                           data_or_null(upper), data_or_null(gaps), data_or_null(warm)};
  {
    nb::gil_scoped_release release;
    parallel_for(int(m), threads, kernels.step_workspace(s), [&](int i, Arena arena) {
      residual[i] = kernels.rollout(ctx, in, alphas.data()[i], start.data() + i * start_stride,
                                    controls.data() + i * control_stride, states + i * (N + 1) * nx,
                                    us + i * N * nu, lambda + i * N * n, sigma + i * N * n, modes + i * N * nc, arena);
    });
  }
  return nb::make_tuple(o_states, o_us, o_lambda, o_sigma, o_modes, o_residual);
}

// Differentiate K steps about x (K,nx), u (K,nu), whose hard solutions are lambda, sigma (K,n), modes (K,nc).
// The frozen-impulse part is taken at `explicit_lambda` where given.
std::shared_ptr<Linearization> linearize(Model model, In<2> x, In<2> u, In<2> lambda, In<2> sigma, IntIn<2> modes,
                                         Maybe<2> explicit_lambda, int threads) {
  const std::size_t knots = x.shape(0);
  check_steps(model->handle.system, knots, x, u, lambda, sigma, modes);
  check_shape("explicit_impulses", explicit_lambda, {knots, std::size_t(model->handle.system.n)});
  auto lin = std::make_shared<Linearization>(model, int(knots));
  std::copy_n(x.data(), x.size(), lin->x.data());
  std::copy_n(u.data(), u.size(), lin->u.data());
  std::copy_n(lambda.data(), lambda.size(), lin->lambda.data());
  std::copy_n(sigma.data(), sigma.size(), lin->sigma.data());
  std::copy_n(modes.data(), modes.size(), lin->mode.begin());
  const double *frozen = explicit_lambda ? explicit_lambda->data() : lin->lambda.data();
  const bool whole = bool(explicit_lambda);
  const StepContext ctx = model->context();
  const int n = ctx.system->n;
  std::atomic<bool> ok{true};
  {
    nb::gil_scoped_release release;
    parallel_for(lin->knots, threads, kernels.step_workspace(*ctx.system), [&](int k, Arena arena) {
      const LinearizedKnot knot = lin->knot(k);
      if (!kernels.linearize(ctx, knot.x, knot.u, frozen + std::size_t(k) * n, whole, knot, arena)) ok = false;
    });
  }
  if (!ok) throw nb::value_error("`states` hold a configuration whose mass matrix is not positive definite");
  return lin;
}

// b (K,n) of the knots' contact problems.
nb::object free_velocity(const Linearization &lin) {
  double *b;
  nb::object result = make_array<double>({std::size_t(lin.knots), std::size_t(lin.model->handle.system.n)}, &b);
  std::copy_n(lin.b.data(), lin.b.size, b);
  return result;
}

// A_NN (K,nc) of the knots' contact problems.
nb::object normal_compliance(Linearization &lin) {
  const StepContext ctx = lin.model->context();
  const std::size_t K = lin.knots, nc = ctx.system->nc;
  double *a;
  nb::object result = make_array<double>({K, nc}, &a);
  parallel_for(int(K), 1, kernels.step_workspace(*ctx.system),
               [&](int k, Arena arena) { kernels.normal_compliance(ctx, lin.knot(k), a + k * nc, arena); });
  return result;
}

// Which contacts (K,nc) the law of a gradient sees: guards and limits of joints that are far are left out.
nb::object seen_contacts(Linearization &lin, const Gradient &g) {
  const StepContext ctx = lin.model->context();
  const std::size_t K = lin.knots, nc = ctx.system->nc;
  bool *seen;
  nb::object result = make_array<bool>({K, nc}, &seen);
  parallel_for(int(K), 1, kernels.step_workspace(*ctx.system),
               [&](int k, Arena arena) { kernels.seen_contacts(ctx, lin.knot(k), g, seen + k * nc, arena); });
  return result;
}

// f_x (K,ndx,ndx), f_u (K,ndx,nu), and of the relaxed solves: worst status, iterations (K).
nb::tuple with_gradient(Linearization &lin, const Gradient &g, int threads) {
  const StepContext ctx = lin.model->context();
  const std::size_t K = lin.knots, ndx = 2 * ctx.system->nv, nu = ctx.system->nu;
  double *f_x, *f_u;
  int *status, *iterations;
  nb::object o_x = make_array<double>({K, ndx, ndx}, &f_x, false), o_u = make_array<double>({K, ndx, nu}, &f_u, false),
             o_status = make_array<int>({K}, &status), o_iterations = make_array<int>({K}, &iterations);
  {
    nb::gil_scoped_release release;
    parallel_for(int(K), threads, kernels.step_workspace(*ctx.system), [&](int k, Arena arena) {
      RelaxedInfo info;
      kernels.transition(ctx, lin.knot(k), g, std::uint64_t(k), f_x + k * ndx * ndx, f_u + k * ndx * nu, &info, arena);
      status[k] = info.status;
      iterations[k] = info.iterations;
    });
  }
  return nb::make_tuple(o_x, o_u, o_status, o_iterations);
}

// f_x (K,ndx,ndx), f_u (K,ndx,nu) of the hard steps from x (K,nx) under u (K,nu).
nb::tuple transition(const TimeStepping &model, In<2> x, In<2> u, const Gradient &g, int threads) {
  const StepContext ctx = model.context();
  const System &s = *ctx.system;
  const std::size_t K = x.shape(0), nx = s.nq + s.nv, ndx = 2 * s.nv, nu = s.nu;
  checked_count("states", K);
  check_shape("states", x, {K, nx});
  check_shape("controls", u, {K, nu});
  double *f_x, *f_u;
  nb::object o_x = make_array<double>({K, ndx, ndx}, &f_x, false), o_u = make_array<double>({K, ndx, nu}, &f_u, false);
  std::atomic<bool> ok{true};
  {
    nb::gil_scoped_release release;
    parallel_for(int(K), threads, kernels.step_workspace(s), [&](int k, Arena arena) {
      RelaxedInfo info;
      if (!kernels.step_transition(ctx, x.data() + k * nx, u.data() + k * nu, g, std::uint64_t(k), f_x + k * ndx * ndx,
                                   f_u + k * ndx * nu, &info, arena))
        ok = false;
    });
  }
  if (!ok) throw nb::value_error("`states` and `controls` must lead to finite states, from configurations whose mass matrix is positive definite");
  return nb::make_tuple(o_x, o_u);
}

// d lambda and d sigma per dx and du (K,n,ndx), (K,n,nu) under a gradient:
//   dlambda = (d lambda/d b) dsigma|lambda,   dsigma = dsigma|lambda + A dlambda
nb::tuple contact_response(Linearization &lin, const Gradient &g) {
  const StepContext ctx = lin.model->context();
  const std::size_t K = lin.knots, n = ctx.system->n, ndx = 2 * ctx.system->nv, nu = ctx.system->nu;
  double *out[4];
  nb::object o[4] = {make_array<double>({K, n, ndx}, out), make_array<double>({K, n, nu}, out + 1),
                     make_array<double>({K, n, ndx}, out + 2), make_array<double>({K, n, nu}, out + 3)};
  parallel_for(int(K), 1, kernels.step_workspace(*ctx.system), [&](int k, Arena arena) {
    kernels.contact_response(ctx, lin.knot(k), g, std::uint64_t(k), out[0] + k * n * ndx, out[1] + k * n * nu,
                             out[2] + k * n * ndx, out[3] + k * n * nu, arena);
  });
  return nb::make_tuple(o[0], o[1], o[2], o[3]);
}

// x+ (K,nx), lambda*, sigma* (K,n), status (K) of the steps with the relaxed law.
nb::tuple relaxed_step(const TimeStepping &model, In<2> x, In<2> u, In<2> lambda, In<2> sigma, IntIn<2> modes,
                       const Gradient &g) {
  const StepContext ctx = model.context();
  const System &s = *ctx.system;
  const std::size_t K = x.shape(0), nx = s.nq + s.nv, nu = s.nu, n = s.n, nc = s.nc;
  check_steps(s, K, x, u, lambda, sigma, modes);
  double *next, *l, *sg;
  int *status;
  nb::object o_next = make_array<double>({K, nx}, &next), o_l = make_array<double>({K, n}, &l),
             o_s = make_array<double>({K, n}, &sg), o_status = make_array<int>({K}, &status);
  parallel_for(int(K), 1, kernels.step_workspace(s), [&](int k, Arena arena) {
    RelaxedInfo info;
    kernels.relaxed_step(ctx, x.data() + k * nx, u.data() + k * nu, lambda.data() + k * n, sigma.data() + k * n,
                         modes.data() + k * nc, g, next + k * nx, l + k * n, sg + k * n, &info, arena);
    status[k] = info.status;
  });
  return nb::make_tuple(o_next, o_l, o_s, o_status);
}

// Transposed steps: g (K,ndx) -> g_x (K,ndx), g_u (K,nu), g_theta (K,np), g_mu (K,nc).
nb::tuple step_vjp(const TimeStepping &model, In<2> x, In<2> u, In<2> lambda, In<2> sigma, IntIn<2> modes, In<2> g,
                   const Gradient &gradient, int threads) {
  const StepContext ctx = model.context();
  const System &s = *ctx.system;
  const std::size_t K = x.shape(0), nx = s.nq + s.nv, ndx = 2 * s.nv, nu = s.nu, n = s.n, nc = s.nc, np = s.np;
  check_steps(s, K, x, u, lambda, sigma, modes);
  check_shape("g", g, {K, ndx});
  double *g_x, *g_u, *g_theta, *g_mu;
  nb::object o_x = make_array<double>({K, ndx}, &g_x), o_u = make_array<double>({K, nu}, &g_u),
             o_theta = make_array<double>({K, np}, &g_theta), o_mu = make_array<double>({K, nc}, &g_mu);
  std::atomic<bool> ok{true};
  {
    nb::gil_scoped_release release;
    parallel_for(int(K), threads, kernels.step_workspace(s), [&](int k, Arena arena) {
      if (!kernels.step_vjp(ctx, x.data() + k * nx, u.data() + k * nu, lambda.data() + k * n, sigma.data() + k * n,
                            modes.data() + k * nc, g.data() + k * ndx, gradient, std::uint64_t(k), g_x + k * ndx,
                            g_u + k * nu, g_theta + k * np, g_mu + k * nc, arena))
        ok = false;
    });
  }
  if (!ok) throw nb::value_error("`states` hold a configuration whose mass matrix is not positive definite");
  return nb::make_tuple(o_x, o_u, o_theta, o_mu);
}

// x1 (-) x0 (inverse = false) or x0 (+) dx (inverse = true), row by row.
nb::object on_manifold(const SystemHandle &h, In<2> x0, In<2> other, bool integrate) {
  const System &s = h.system;
  const std::size_t K = x0.shape(0), nq = s.nq, nv = s.nv, nx = nq + nv, ndx = 2 * nv;
  check_shape("x0", x0, {K, nx});
  check_shape("other", other, {K, integrate ? ndx : nx});
  double *out;
  nb::object result = make_array<double>({K, integrate ? nx : ndx}, &out);
  for (std::size_t k = 0; k < K; ++k) {
    const double *a = x0.data() + k * nx, *b = other.data() + k * (integrate ? ndx : nx);
    double *o = out + k * (integrate ? nx : ndx);
    auto *combine = integrate ? s.integrate : s.difference;
    const double sign = integrate ? 1 : -1;
    if (combine)
      combine(s.self, a, b, o);
    else
      for (std::size_t i = 0; i < nv; ++i) o[i] = integrate ? a[i] + b[i] : b[i] - a[i];
    const std::size_t va = nq, vb = integrate ? nv : nq, vo = integrate ? nq : nv;
    for (std::size_t i = 0; i < nv; ++i) o[vo + i] = b[vb + i] + sign * a[va + i];
  }
  return result;
}

}  // namespace

void bind_system(nb::module_ &m) {
  nb::class_<SystemHandle>(m, "System")
      .def_prop_ro("nq", [](const SystemHandle &h) { return h.system.nq; })
      .def_prop_ro("slip_speed", [](const SystemHandle &h) { return h.system.slip_speed; })
      .def_prop_ro("nv", [](const SystemHandle &h) { return h.system.nv; })
      .def_prop_ro("nu", [](const SystemHandle &h) { return h.system.nu; })
      .def_prop_ro("np", [](const SystemHandle &h) { return h.system.np; })
      .def_prop_ro("nc", [](const SystemHandle &h) { return h.system.nc; })
      .def_prop_ro("n", [](const SystemHandle &h) { return h.system.n; });
  m.def("linear_system", &linear_system);
  m.def("euclidean_space", &euclidean_space, nb::arg("nv"), nb::arg("nu"));
  m.def("system_terms", &system_terms, nb::arg("system"), nb::arg("theta").none(), nb::arg("q"), nb::arg("v"));
  m.def("system_joint_forces", &system_joint_forces, nb::arg("system"), nb::arg("theta").none(), nb::arg("q"));
  m.def("system_derivatives", &system_derivatives, nb::arg("system"), nb::arg("theta").none(), nb::arg("q"),
        nb::arg("v"), nb::arg("a"), nb::arg("u"), nb::arg("f"), nb::arg("w"));
  m.def("on_manifold", &on_manifold, nb::arg("system"), nb::arg("x0"), nb::arg("other"), nb::arg("integrate"));

  nb::class_<TimeStepping>(m, "TimeStepping")
      .def(
          "__init__",
          [](TimeStepping *self, const SystemHandle &system, double h, In<1> friction, Maybe<1> theta, Maybe<1> restitution) {
            check_has_terms(system.system);
            if (!(h > 0 && std::isfinite(h))) refuse("time_step", "be finite and > 0, got " + std::to_string(h));
            check_shape("friction", friction, {std::size_t(system.system.nc)});
            check_shape("theta", theta, {std::size_t(system.system.np)});
            check_shape("restitution", restitution, {std::size_t(system.system.nc)});
            new (self) TimeStepping{system, h, to_vector<1>(friction), {}, {}, {}};
            if (theta) self->theta = to_vector<1>(*theta);
            if (restitution) self->restitution = to_vector<1>(*restitution);
            if (!system.system.optional()) return;
            self->optional_compliance.resize(system.system.optional());
            Workspace work(kernels.step_workspace(system.system));
            const double *offsets = self->theta.empty() ? nullptr : self->theta.data();
            if (!kernels.optional_compliance(system.system, offsets, self->optional_compliance.data(), work.arena()))
              refuse("theta", "leave the mass matrix positive definite");
          },
          nb::arg("system"), nb::arg("time_step"), nb::arg("friction"), nb::arg("theta").none(),
          nb::arg("restitution") = nb::none())
      .def("rollout", &rollout, nb::arg("start"), nb::arg("controls"), nb::arg("alphas"), nb::arg("states").none(),
           nb::arg("feedforward").none(), nb::arg("feedback").none(), nb::arg("lower").none(), nb::arg("upper").none(),
           nb::arg("gaps").none(), nb::arg("impulses").none(), nb::arg("threads"))
      .def("transition", &transition, nb::arg("states"), nb::arg("controls"), nb::arg("gradient"), nb::arg("threads"))
      .def("relaxed_step", &relaxed_step)
      .def("step_vjp", &step_vjp);
  m.def("linearize", &linearize, nb::arg("model"), nb::arg("states"), nb::arg("controls"), nb::arg("impulses"),
        nb::arg("velocities"), nb::arg("modes"), nb::arg("explicit_impulses").none(), nb::arg("threads"));
  nb::class_<Linearization>(m, "Linearization")
      .def("with_gradient", &with_gradient, nb::arg("gradient"), nb::arg("threads"))
      .def("seen_contacts", &seen_contacts, nb::arg("gradient"))
      .def("contact_response", &contact_response, nb::arg("gradient"))
      .def("free_velocity", &free_velocity)
      .def("normal_compliance", &normal_compliance);
}

}  // namespace cito
