// The published entry points of the core; kernels.cpp fills the table for the machine it runs on.
#pragma once
#include "core.hpp"
#include "tree.hpp"

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
  // The same with eps (nc) [m/s], the smoothing of ||sigma_T||, given (null: the rule of the law).
  void (*relaxed_solve_smoothed)(const Contacts &, const double *A, const double *b, const double *lambda_hard,
                                 const double *sigma_hard, const int *mode, const Gradient &, const double *eps,
                                 double *lambda, double *sigma, RelaxedInfo *, Arena);
  // d lambda / d b (n,n) of the gradient's law, and d lambda / d mu (n,nc) if not null, from the hard
  // solution. knot selects the samples of randomized gradients. `info` may be null.
  void (*contact_sensitivity)(const Contacts &, const double *A, const double *b, const double *lambda_hard,
                              const double *sigma_hard, const int *mode, const Gradient &, std::uint64_t knot,
                              double *dlambda_db, double *dlambda_dmu, RelaxedInfo *info, Arena);

  // --- shapes, at a point in the frame of the body that carries it, or of the world: shapes.inc
  void (*signed_distance)(const Shape &, const double *x, Distance &);

  // --- points of soft bodies, matrices component first (D,D,m), R in and out: soft.inc
  void (*soft_local_2)(std::size_t m, const double *F, const double *A, double *R, double *P, double *psi);
  void (*soft_local_3)(std::size_t m, const double *F, const double *A, double *R, double *P, double *psi);
  void (*soft_gains_2)(std::size_t m, const double *F, const double *A, const double *R, double *G);
  void (*soft_gains_3)(std::size_t m, const double *F, const double *A, const double *R, double *G);
  void (*soft_derivative_2)(std::size_t m, const double *Z, const double *A, const double *R, const double *G,
                            bool stress, double *out);
  void (*soft_derivative_3)(std::size_t m, const double *Z, const double *A, const double *R, const double *G,
                            bool stress, double *out);

  // --- kinematic tree: the callbacks of a System over a Tree
  std::size_t (*tree_workspace)(const Tree &);
  decltype(System::terms) tree_terms;
  decltype(System::derivatives) tree_derivatives;
  decltype(System::transposed_derivatives) tree_transposed_derivatives;
  // the same of a tree with parameters theta: tree_parameters.inc
  std::size_t (*varied_tree_workspace)(const Tree &);
  decltype(System::terms) varied_tree_terms;
  decltype(System::derivatives) varied_tree_derivatives;
  decltype(System::transposed_derivatives) varied_tree_transposed_derivatives;
  decltype(System::joint_forces) tree_joint_forces;
  decltype(System::integrate) tree_integrate;
  decltype(System::difference) tree_difference;
  decltype(System::to_tangent) tree_to_tangent;
  decltype(System::to_coordinates) tree_to_coordinates;
  decltype(System::integrate_jacobians) tree_integrate_jacobians;
  decltype(System::difference_jacobian) tree_difference_jacobian;

  // --- step and its derivatives: step.inc, linearize.inc, transition.inc, rollout.inc, adjoint.inc
  std::size_t (*step_workspace)(const System &);
  bool (*optional_compliance)(const System &, const double *theta, double *out, Arena);
  bool (*step)(const StepContext &, const double *x, const double *u, const double *warm, double *x_next,
               double *lambda, double *sigma, int *mode, HardInfo *, Arena);
  bool (*relaxed_step)(const StepContext &, const double *x, const double *u, const double *lambda_hard,
                       const double *sigma_hard, const int *mode, const Gradient &, double *x_next, double *lambda,
                       double *sigma, RelaxedInfo *, Arena);
  // `whole`: with the rows of all contacts.
  bool (*linearize)(const StepContext &, const double *x, const double *u, const double *lambda, bool whole,
                    const LinearizedKnot &, Arena);
  void (*transition)(const StepContext &, const LinearizedKnot &, const Gradient &, std::uint64_t knot, double *f_x,
                     double *f_u, RelaxedInfo *, Arena);
  bool (*step_transition)(const StepContext &, const double *x, const double *u, const Gradient &, std::uint64_t knot,
                          double *f_x, double *f_u, RelaxedInfo *, Arena);
  // Whether the law of the gradient sees each contact (nc) of the knot.
  void (*seen_contacts)(const StepContext &, const LinearizedKnot &, const Gradient &, bool *seen, Arena);
  void (*normal_compliance)(const StepContext &, const LinearizedKnot &, double *A_NN, Arena);
  void (*contact_response)(const StepContext &, const LinearizedKnot &, const Gradient &, std::uint64_t knot,
                           double *lambda_x, double *lambda_u, double *sigma_x, double *sigma_u, Arena);
  double (*rollout)(const StepContext &, const RolloutInput &, double alpha, const double *start, const double *U,
                    double *states, double *controls, double *impulses, double *velocities, int *modes, Arena);
  bool (*step_vjp)(const StepContext &, const double *x, const double *u, const double *lambda, const double *sigma,
                   const int *mode, const double *g, const Gradient &, std::uint64_t knot, double *g_x, double *g_u,
                   double *g_theta, double *g_mu, Arena);
  void (*transposed_derivatives)(const System &, const double *theta, const double *q, const double *v, const double *a,
                                 const double *u, const double *f, const double *w, const double *y, const double *z,
                                 const double *zeta, double *g_q, double *g_v, double *g_theta, Arena kept, Arena);
  Arena (*take_kept)(const System &, Arena &);  // memory for `terms`
  bool (*rollout_vjp)(const StepContext &, const TransposedRollout &, const Gradient &, double *g_start,
                      double *g_controls, double *g_theta, double *g_mu, Arena);

  // --- cost and Riccati recursion: cost.inc, cost_robot.inc, riccati.inc
  std::size_t (*cost_workspace)(const System &);
  double (*cost_value)(const System &, int N, const CostTerm *, int n_terms, const double *X, const double *U, Arena);
  void (*cost_expansion)(const System &, int N, const CostTerm *, int n_terms, const double *X, const double *U,
                         double *l_x, double *l_u, double *l_xx, double *l_uu, Arena);
  std::size_t (*riccati_workspace)(int ndx, int nu);
  int (*riccati)(const RiccatiInput &, double reg, double *k, double *K, double *dV, Arena);
  void (*linear_rollout)(const RiccatiInput &, const double *k, const double *K, double *dX, double *dU);
};

extern const Kernels kernels;

}  // namespace cito
