// M dv/dt + K q + D v + c_0 = B u + J' f,  phi = G q + phi_0; theta = (logarithm of a scale on M and c_0).
#pragma once
#include <cmath>
#include <memory>
#include <vector>

#include "system_handle.hpp"

namespace cito {

struct LinearSystem {
  int nv, nu, nc, n;
  std::vector<double> M, K, D, c0, B, J, G, phi0;
  std::vector<int> dim, row;

  static double scale(const double *theta) { return theta ? std::exp(theta[0]) : 1.0; }

  static void terms(const void *self, const double *theta, const double *q, const double *v, double *M, double *c,
                    double *B, double *J, double *phi, Arena) {
    const auto &s = *static_cast<const LinearSystem *>(self);
    const double m = scale(theta);
    for (int i = 0; i < s.nv; ++i) {
      c[i] = m * s.c0[i];
      for (int j = 0; j < s.nv; ++j) {
        M[i * s.nv + j] = m * s.M[i * s.nv + j];
        c[i] += s.K[i * s.nv + j] * q[j] + s.D[i * s.nv + j] * v[j];
      }
    }
    for (std::size_t i = 0; i < s.B.size(); ++i) B[i] = s.B[i];
    for (std::size_t i = 0; i < s.J.size(); ++i) J[i] = s.J[i];
    for (int i = 0; i < s.nc; ++i) {
      phi[i] = s.phi0[i];
      for (int j = 0; j < s.nv; ++j) phi[i] += s.G[i * s.nv + j] * q[j];
    }
  }

  static void derivatives(const void *self, const double *theta, const double *, const double *, const double *a,
                          const double *, const double *, const double *, double *r_q, double *r_v, double *Jw_q,
                          double *phi_q, double *r_theta, double *Jw_theta, double *phi_theta, const unsigned char *,
                          Arena, Arena) {
    const auto &s = *static_cast<const LinearSystem *>(self);
    for (int i = 0; i < s.nv * s.nv; ++i) {
      r_q[i] = s.K[i];
      r_v[i] = s.D[i];
    }
    for (int i = 0; i < s.n * s.nv; ++i) Jw_q[i] = 0;
    for (int i = 0; i < s.nc * s.nv; ++i) phi_q[i] = s.G[i];
    if (!r_theta) return;
    const double m = scale(theta);
    for (int i = 0; i < s.nv; ++i) {
      r_theta[i] = s.c0[i];
      for (int j = 0; j < s.nv; ++j) r_theta[i] += s.M[i * s.nv + j] * a[j];
      r_theta[i] *= m;
    }
    for (int i = 0; i < s.n; ++i) Jw_theta[i] = 0;
    for (int i = 0; i < s.nc; ++i) phi_theta[i] = 0;
  }

  static SystemHandle handle(std::shared_ptr<LinearSystem> s) {
    SystemHandle h;
    h.system.self = s.get();
    h.system.nq = h.system.nv = s->nv;
    h.system.nu = s->nu;
    h.system.np = 1;
    h.system.nc = s->nc;
    h.system.n = s->n;
    h.system.dim = s->dim.data();
    h.system.row = s->row.data();
    h.system.terms = terms;
    h.system.derivatives = derivatives;
    h.storage = s;
    return h;
  }
};

}  // namespace cito
