// Costs over a horizon, and the Riccati recursion.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "time_stepping.hpp"

namespace cito {
namespace {

// Names of CostKind, in its order.
constexpr const char *kind_names[cost_kinds] = {"state", "control", "control limits", "entries", "entry limits",
                                                "pose",  "twist",   "com",            "slip",    "air"};

int cost_kind(const std::string &name) {
  for (int kind = 0; kind < cost_kinds; ++kind)
    if (name == kind_names[kind]) return kind;
  refuse("kind", "be a kind of cost, got '" + name + "'");
}

// The terms of a problem with horizon N; owns their numbers.
struct CostTable {
  struct Term {
    int kind, stride, count;
    std::vector<double> weight, reference, parameter;
    std::vector<int> index;
    std::vector<unsigned char> mask;
  };
  SystemHandle handle;
  int N;
  std::vector<Term> owned;

  // Terms in x have N+1 knots, those in u N; the reference is one row or one for each knot. See CostKind.
  void add(const std::string &name, In<1> weight, In<2> reference,
           nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu> active, IntIn<1> index, In<1> parameters) {
    const System &s = handle.system;
    const int kind = cost_kind(name), count = count_of(kind, weight, index);
    const std::size_t c = count, nu = s.nu, rows = reference.shape(0);
    const std::size_t knots = std::size_t(N) + (kind == cost_control || kind == cost_control_limits ? 0 : 1);
    const std::size_t weights[] = {2 * std::size_t(s.nv), nu, nu, c, c, 6, 6, 3, c, c};
    const std::size_t widths[] = {std::size_t(s.nq + s.nv), nu, 2 * nu, c, 2 * c, 7, 6, 3, 0, c};
    const std::size_t numbers[] = {0, 0, 0, 0, 0, 3, 3, 0, 1, 1};
    check_shape("weight", weight, {weights[kind]});
    check_shape("reference", reference, {rows == 1 ? 1 : knots, widths[kind]});
    check_shape("active", active, {knots});
    check_shape("parameters", parameters, {numbers[kind]});
    owned.push_back({kind, rows == 1 ? 0 : int(widths[kind]), count, copied(weight), copied(reference), copied(parameters),
                     {index.data(), index.data() + index.size()}, {active.data(), active.data() + knots}});
  }

  // How many entries or contacts; checks what they are.
  int count_of(int kind, const In<1> &weight, const IntIn<1> &index) const {
    const System &s = handle.system;
    const Tree *tree = s.tree;
    if (kind >= cost_pose && !tree) refuse("system", "be a kinematic tree for a cost of this kind");
    const int count = checked_size("weight", weight.size());
    if (kind == cost_entries || kind == cost_entry_limits) {
      check_shape("index", index, {2 * std::size_t(count)});
      for (int i = 0; i < count; ++i) {
        check_index(index.data()[i], s.nq + s.nv);
        check_index(index.data()[count + i], 2 * s.nv);
      }
      return count;
    }
    if (kind == cost_slip || kind == cost_air) {
      check_shape("index", index, {std::size_t(count)});
      for (int i = 0; i < count; ++i) check_index(index.data()[i], tree->nc);
      return count;
    }
    const bool pose = kind == cost_pose, twist = kind == cost_twist;
    check_shape("index", index, {std::size_t(pose ? 1 : twist ? 2 : 0)});
    if (pose || twist) check_index(index.data()[0], tree->nb);
    if (twist) check_index(index.data()[1], 3);
    return 0;
  }

  static void check_index(int i, int end) {
    if (i < 0 || i >= end) refuse("index", "be from 0 to " + std::to_string(end - 1) + ", got " + std::to_string(i));
  }
  template <class A> static std::vector<double> copied(const A &a) { return {a.data(), a.data() + a.size()}; }

  std::vector<CostTerm> terms() const {
    std::vector<CostTerm> result;
    for (const Term &t : owned)
      result.push_back({t.kind, t.weight.data(), t.reference.data(), t.stride, t.mask.data(), t.count, t.index.data(),
                        t.parameter.data()});
    return result;
  }
};

CostTable cost_table(const SystemHandle &system, int N) {
  const System &s = system.system;
  if (N < 0) refuse("horizon", "be >= 0, got " + std::to_string(N));
  const std::size_t knots = std::size_t(N) + 1;
  check_extent("states", {knots, std::size_t(s.nq + s.nv)});
  check_extent("controls", {knots, std::size_t(s.nu)});
  return {system, checked_count("horizon", N), {}};
}

nb::object cost_value(const CostTable &table, In<3> X, In<3> U) {
  const System &s = table.handle.system;
  const std::size_t m = checked_count("states", X.shape(0)), N = table.N, nx = s.nq + s.nv, nu = s.nu;
  check_shape("states", X, {m, N + 1, nx});
  check_shape("controls", U, {m, N, nu});
  const auto terms = table.terms();
  double *values;
  nb::object result = make_array<double>({m}, &values);
  parallel_for(int(m), 1, kernels.cost_workspace(s), [&](int i, Arena arena) {
    values[i] = kernels.cost_value(s, table.N, terms.data(), int(terms.size()), X.data() + i * (N + 1) * nx,
                                   U.data() + i * N * nu, arena);
  });
  return result;
}

// l_x (N+1,ndx), l_u (N,nu), l_xx (N+1,ndx,ndx), l_uu (N,nu,nu).
nb::tuple cost_expansion(const CostTable &table, In<2> X, In<2> U) {
  const System &s = table.handle.system;
  const std::size_t N = table.N, ndx = 2 * s.nv, nu = s.nu;
  check_shape("states", X, {N + 1, std::size_t(s.nq + s.nv)});
  check_shape("controls", U, {N, nu});
  check_extent("l_xx", {N + 1, ndx, ndx});
  check_extent("l_uu", {N + 1, nu, nu});
  const auto terms = table.terms();
  double *l_x, *l_u, *l_xx, *l_uu;
  nb::object o_x = make_array<double>({N + 1, ndx}, &l_x), o_u = make_array<double>({N, nu}, &l_u),
             o_xx = make_array<double>({N + 1, ndx, ndx}, &l_xx), o_uu = make_array<double>({N, nu, nu}, &l_uu);
  parallel_for(1, 1, kernels.cost_workspace(s), [&](int, Arena arena) {
    kernels.cost_expansion(s, table.N, terms.data(), int(terms.size()), X.data(), U.data(), l_x, l_u, l_xx, l_uu,
                           arena);
  });
  return nb::make_tuple(o_x, o_u, o_xx, o_uu);
}

void check_stacks(std::size_t N, std::size_t ndx, std::size_t nu) {
  checked_size("ndx", ndx), checked_size("nu", nu), checked_count("horizon", N);
  check_extent("f_x", {N + 1, ndx, ndx});
  check_extent("f_u", {N + 1, ndx, nu});
  check_extent("l_uu", {N + 1, nu, nu});
}

// k (N,nu), K (N,nu,ndx), dV (3), and -1 or the knot where Q_uu is not positive definite. `integration` may be given where
// its dq+ = D_q dq + h D_v dv+ holds in f_x, f_u.
nb::tuple riccati(In<3> f_x, In<3> f_u, In<2> l_x, In<2> l_u, In<3> l_xx, In<3> l_uu, Maybe<3> l_ux, Maybe<2> gaps,
                  Maybe<2> U, Maybe<1> lower, Maybe<1> upper, double reg, const Linearization *integration) {
  const std::size_t N = l_u.shape(0), ndx = l_x.shape(1), nu = l_u.shape(1);
  check_stacks(N, ndx, nu);
  check_shape("f_x", f_x, {N, ndx, ndx});
  check_shape("f_u", f_u, {N, ndx, nu});
  check_shape("l_x", l_x, {N + 1, ndx});
  check_shape("l_xx", l_xx, {N + 1, ndx, ndx});
  check_shape("l_uu", l_uu, {N, nu, nu});
  check_shape("l_ux", l_ux, {N, nu, ndx});
  check_shape("gaps", gaps, {N, ndx});
  check_shape("controls", U, {N, nu});
  check_shape("lower", lower, {nu});
  check_shape("upper", upper, {nu});
  if ((lower || upper) && !U) throw nb::value_error("`controls` must be given with limits");
  double *k, *K, *dV;
  nb::object o_k = make_array<double>({N, nu}, &k), o_K = make_array<double>({N, nu, ndx}, &K),
             o_dV = make_array<double>({3}, &dV);
  RiccatiInput in = {int(N),          int(ndx),         int(nu),            f_x.data(),         f_u.data(),
                     l_x.data(),      l_u.data(),       l_xx.data(),        l_uu.data(),        data_or_null(l_ux),
                     data_or_null(gaps), data_or_null(U), data_or_null(lower), data_or_null(upper)};
  if (integration) {
    in.system = &integration->model->handle.system, in.h = integration->model->h;
    in.D_q = integration->D_q.data(), in.D_v = integration->D_v.data();
    if (std::size_t(integration->knots) != N || 2 * std::size_t(in.system->nv) != ndx || std::size_t(in.system->nu) != nu)
      refuse("integration", "linearize the same knots as f_x, f_u");
  }
  int failed = -1;
  parallel_for(1, 1, kernels.riccati_workspace(int(ndx), int(nu)),
               [&](int, Arena arena) { failed = kernels.riccati(in, reg, k, K, dV, arena); });
  return nb::make_tuple(o_k, o_K, o_dV, failed);
}

// dX (N+1,ndx), dU (N,nu): the policy k, K on the linear model, from dx_0 = 0.
nb::tuple linear_rollout(In<3> f_x, In<3> f_u, In<2> k, In<3> K) {
  const std::size_t N = k.shape(0), nu = k.shape(1), ndx = f_x.shape(1);
  check_stacks(N, ndx, nu);
  check_shape("f_x", f_x, {N, ndx, ndx});
  check_shape("f_u", f_u, {N, ndx, nu});
  check_shape("K", K, {N, nu, ndx});
  double *dX, *dU;
  nb::object o_X = make_array<double>({N + 1, ndx}, &dX), o_U = make_array<double>({N, nu}, &dU);
  RiccatiInput in = {};
  in.N = int(N), in.ndx = int(ndx), in.nu = int(nu), in.f_x = f_x.data(), in.f_u = f_u.data();
  kernels.linear_rollout(in, k.data(), K.data(), dX, dU);
  return nb::make_tuple(o_X, o_U);
}

}  // namespace

void bind_solver(nb::module_ &m) {
  nb::class_<CostTable>(m, "CostTable")
      .def(
          "__init__", [](CostTable *self, const SystemHandle &system, int N) { new (self) CostTable(cost_table(system, N)); },
          nb::arg("system"), nb::arg("horizon"))
      .def("add", &CostTable::add, nb::arg("kind"), nb::arg("weight"), nb::arg("reference"), nb::arg("active"),
           nb::arg("index"), nb::arg("parameters"))
      .def("value", &cost_value, nb::arg("states"), nb::arg("controls"))
      .def("expansion", &cost_expansion, nb::arg("states"), nb::arg("controls"));
  m.def("linear_rollout", &linear_rollout, nb::arg("f_x"), nb::arg("f_u"), nb::arg("feedforward"),
        nb::arg("feedback"));
  m.def("riccati", &riccati, nb::arg("f_x"), nb::arg("f_u"), nb::arg("l_x"), nb::arg("l_u"), nb::arg("l_xx"),
        nb::arg("l_uu"), nb::arg("l_ux").none(), nb::arg("gaps").none(), nb::arg("controls").none(),
        nb::arg("lower").none(), nb::arg("upper").none(), nb::arg("regularization"), nb::arg("integration").none() = nb::none());
}

}  // namespace cito
