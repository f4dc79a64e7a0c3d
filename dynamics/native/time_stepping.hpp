// A system with its time step, friction and parameters: what is stepped, linearized and rolled out.
#pragma once
#include <memory>
#include <vector>

#include "bindings.hpp"
#include "system_handle.hpp"

namespace cito {

struct TimeStepping {
  SystemHandle handle;
  double h;
  std::vector<double> mu, theta, restitution;  // the last empty where all are zero
  std::vector<double> optional_compliance;        // see StepContext

  StepContext context() const {
    const System &s = handle.system;
    return {&s, {s.nc, s.n, s.dim, s.row, mu.data()}, theta.empty() ? nullptr : theta.data(), h,
            restitution.empty() ? nullptr : restitution.data(),
            optional_compliance.empty() ? nullptr : optional_compliance.data()};
  }
};

// Memory that is written to before it is read: clearing it would cost as much as filling it.
struct Doubles {
  std::unique_ptr<double[]> block;
  std::size_t size = 0;
  void resize(std::size_t count) { block.reset(new double[count ? count : 1]), size = count; }
  double *data() const { return block.get(); }
};

// A linearized set of knots; owns its memory, row-major.
struct Linearization {
  std::shared_ptr<const TimeStepping> model;
  int knots;
  Doubles x, u, lambda, sigma, v_z, sigma_z, Z, Y, b, D_q, D_v;
  std::vector<int> mode;
  std::vector<unsigned char> formed;

  Linearization(std::shared_ptr<const TimeStepping> model_, int knots_) : model(std::move(model_)), knots(knots_) {
    const System &s = model->handle.system;
    const std::size_t K = knots, nv = s.nv, nu = s.nu, n = s.n, width = LinearizedKnot::width(s);
    x.resize(K * (s.nq + nv)), u.resize(K * nu), lambda.resize(K * n), sigma.resize(K * n), mode.resize(K * s.nc);
    formed.resize(K * s.nc);
    v_z.resize(K * nv * width), sigma_z.resize(K * n * width);
    Z.resize(K * nv * n), Y.resize(K * nv * n), b.resize(K * n), D_q.resize(K * nv * nv), D_v.resize(K * nv * nv);
  }

  LinearizedKnot knot(int k) {
    const System &s = model->handle.system;
    const std::size_t i = k, nv = s.nv, nu = s.nu, n = s.n, width = LinearizedKnot::width(s);
    return {x.data() + i * (s.nq + nv), u.data() + i * nu, lambda.data() + i * n, sigma.data() + i * n,
            mode.data() + i * s.nc, v_z.data() + i * nv * width, sigma_z.data() + i * n * width,
            Z.data() + i * nv * n, Y.data() + i * nv * n,
            b.data() + i * n, D_q.data() + i * nv * nv, D_v.data() + i * nv * nv, formed.data() + i * s.nc};
  }
};

}  // namespace cito
