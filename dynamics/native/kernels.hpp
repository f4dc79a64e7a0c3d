// The published entry points of the core; kernels.cpp fills the table for the machine it runs on.
#pragma once
#include "core.hpp"

namespace cito {

struct Kernels {
  const char *isa;  // "avx2" or "baseline"

  // --- contact problem (A, b, mu): contact_hard.inc, contact_relaxed.inc, contact_sensitivity.inc
  // Doubles of workspace that any one of the contact kernels takes.
  std::size_t (*contact_workspace)(int nc, int n);
  // lambda, sigma (n), mode (nc). warm (n) may be null (cold start).
  void (*hard_solve)(const Contacts &, const double *A, const double *b, const double *warm,
                     double *lambda, double *sigma, int *mode, HardInfo *, Arena);
  // Point of the central path at (rho, delta), Newton from the hard solution.
  void (*relaxed_solve)(const Contacts &, const double *A, const double *b, const double *lambda_hard,
                        const double *sigma_hard, const int *mode, const Gradient &,
                        double *lambda, double *sigma, RelaxedInfo *, Arena);
  // d lambda / d b (n,n) of the gradient's law, and d lambda / d mu (n,nc) if not null, from the hard
  // solution. knot selects the samples of randomized gradients. `info` may be null.
  void (*contact_sensitivity)(const Contacts &, const double *A, const double *b, const double *lambda_hard,
                              const double *sigma_hard, const int *mode, const Gradient &, std::uint64_t knot,
                              double *dlambda_db, double *dlambda_dmu, RelaxedInfo *info, Arena);
};

extern const Kernels kernels;

}  // namespace cito
