// Quadratic costs over a horizon, and the Riccati recursion.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>

#include "time_stepping.hpp"

namespace cito {
namespace {

template <int D> using Maybe = std::optional<In<D>>;
template <class T> const double *data_or_null(const T &a) { return a ? a->data() : nullptr; }

// Raises where an argument has another shape than the others imply.
template <class A> void check_shape(const char *name, const A &a, std::initializer_list<std::size_t> shape) {
  bool fits = a.ndim() == shape.size();
  std::string wanted, got;
  for (std::size_t i = 0; i < a.ndim(); ++i) {
    fits = fits && a.shape(i) == shape.begin()[i];
    wanted += (i ? ", " : "") + std::to_string(shape.begin()[i]);
    got += (i ? ", " : "") + std::to_string(a.shape(i));
  }
  const std::string message = std::string("`") + name + "` must have shape (" + wanted + "), got (" + got + ")";
  if (!fits) throw nb::value_error(message.c_str());
}

// The quadratic terms of a problem with horizon N; owns its weights.
struct CostTable {
  SystemHandle handle;
  int N;
  std::vector<std::vector<double>> weights, references;
  std::vector<std::vector<unsigned char>> masks;
  std::vector<int> kinds, strides;

  void add(int kind, In<1> weight, In<2> reference, nb::ndarray<const bool, nb::ndim<1>, nb::c_contig> active) {
    kinds.push_back(kind);
    weights.emplace_back(weight.data(), weight.data() + weight.size());
    references.emplace_back(reference.data(), reference.data() + reference.size());
    strides.push_back(reference.shape(0) == 1 ? 0 : int(reference.shape(1)));
    masks.emplace_back(active.data(), active.data() + active.size());
  }

  std::vector<CostTerm> terms() const {
    std::vector<CostTerm> result;
    for (std::size_t i = 0; i < kinds.size(); ++i)
      result.push_back({kinds[i], weights[i].data(), references[i].data(), strides[i], masks[i].data()});
    return result;
  }
};

nb::object cost_value(const CostTable &table, In<3> X, In<3> U) {
  const System &s = table.handle.system;
  const std::size_t m = X.shape(0), N = table.N, nx = s.nq + s.nv, nu = s.nu;
  check_shape("states", X, {m, N + 1, nx});
  check_shape("controls", U, {m, N, nu});
  const auto terms = table.terms();
  double *values;
  nb::object result = make_array<double>({m}, &values);
  parallel_for(int(m), 1, 4 * s.nv + 64, [&](int i, Arena arena) {
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
  const auto terms = table.terms();
  double *l_x, *l_u, *l_xx, *l_uu;
  nb::object o_x = make_array<double>({N + 1, ndx}, &l_x), o_u = make_array<double>({N, nu}, &l_u),
             o_xx = make_array<double>({N + 1, ndx, ndx}, &l_xx), o_uu = make_array<double>({N, nu, nu}, &l_uu);
  parallel_for(1, 1, 2 * s.nv * s.nv + 4 * s.nv + 64, [&](int, Arena arena) {
    kernels.cost_expansion(s, table.N, terms.data(), int(terms.size()), X.data(), U.data(), l_x, l_u, l_xx, l_uu,
                           arena);
  });
  return nb::make_tuple(o_x, o_u, o_xx, o_uu);
}

// k (N,nu), K (N,nu,ndx), dV (3), and -1 or the knot where Q_uu is not positive definite.
nb::tuple riccati(In<3> f_x, In<3> f_u, In<2> l_x, In<2> l_u, In<3> l_xx, In<3> l_uu, Maybe<3> l_ux, Maybe<2> gaps,
                  Maybe<2> U, Maybe<1> lower, Maybe<1> upper, double reg) {
  const std::size_t N = l_u.shape(0), ndx = l_x.shape(1), nu = l_u.shape(1);
  check_shape("f_x", f_x, {N, ndx, ndx});
  check_shape("f_u", f_u, {N, ndx, nu});
  check_shape("l_x", l_x, {N + 1, ndx});
  check_shape("l_xx", l_xx, {N + 1, ndx, ndx});
  check_shape("l_uu", l_uu, {N, nu, nu});
  if (l_ux) check_shape("l_ux", *l_ux, {N, nu, ndx});
  if (gaps) check_shape("gaps", *gaps, {N, ndx});
  if (U) check_shape("controls", *U, {N, nu});
  if (lower) check_shape("lower", *lower, {nu});
  if (upper) check_shape("upper", *upper, {nu});
  if ((lower || upper) && !U) throw nb::value_error("`controls` must be given with limits");
  double *k, *K, *dV;
  nb::object o_k = make_array<double>({N, nu}, &k), o_K = make_array<double>({N, nu, ndx}, &K),
             o_dV = make_array<double>({3}, &dV);
  const RiccatiInput in = {int(N),          int(ndx),         int(nu),            f_x.data(),         f_u.data(),
                           l_x.data(),      l_u.data(),       l_xx.data(),        l_uu.data(),        data_or_null(l_ux),
                           data_or_null(gaps), data_or_null(U), data_or_null(lower), data_or_null(upper)};
  int failed = -1;
  parallel_for(1, 1, kernels.riccati_workspace(int(ndx), int(nu)),
               [&](int, Arena arena) { failed = kernels.riccati(in, reg, k, K, dV, arena); });
  return nb::make_tuple(o_k, o_K, o_dV, failed);
}

// dX (N+1,ndx), dU (N,nu): the policy k, K on the linear model, from dx_0 = 0.
nb::tuple linear_rollout(In<3> f_x, In<3> f_u, In<2> k, In<3> K) {
  const std::size_t N = k.shape(0), nu = k.shape(1), ndx = f_x.shape(1);
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
          "__init__", [](CostTable *self, const SystemHandle &system, int N) { new (self) CostTable{system, N, {}, {}, {}, {}, {}}; },
          nb::arg("system"), nb::arg("horizon"))
      .def("add", &CostTable::add, nb::arg("kind"), nb::arg("weight"), nb::arg("reference"), nb::arg("active"))
      .def("value", &cost_value, nb::arg("states"), nb::arg("controls"))
      .def("expansion", &cost_expansion, nb::arg("states"), nb::arg("controls"));
  m.def("linear_rollout", &linear_rollout, nb::arg("f_x"), nb::arg("f_u"), nb::arg("feedforward"),
        nb::arg("feedback"));
  m.def("riccati", &riccati, nb::arg("f_x"), nb::arg("f_u"), nb::arg("l_x"), nb::arg("l_u"), nb::arg("l_xx"),
        nb::arg("l_uu"), nb::arg("l_ux").none(), nb::arg("gaps").none(), nb::arg("controls").none(),
        nb::arg("lower").none(), nb::arg("upper").none(), nb::arg("regularization"));
}

}  // namespace cito
