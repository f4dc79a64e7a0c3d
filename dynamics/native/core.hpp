// The vocabulary of the numerical core: plain structs over raw pointers, row-major, SI units.
// Every hot loop lives in a .inc file that kernels.cpp compiles twice (AVX2 and baseline) and
// publishes through the table `kernels`; nothing here knows Python.
#pragma once
#include <cstdint>
#include <cstddef>
#include <stdexcept>

namespace cito {

// ---------------------------------------------------------------------------- memory
// A stack of doubles. Kernels take it BY VALUE: what they take is given back when they return. Blocks begin at multiples
// of 32 bytes where the first does: no row of a padded matrix then lies across two cache lines.
struct Arena {
  double *top, *end;
  double *take(std::size_t count) {
    double *block = top;
    top += (count + 3) & ~std::size_t(3);
    if (top > end) throw std::length_error("cito: native workspace too small");
    return block;
  }
  int *take_int(std::size_t count) { return reinterpret_cast<int *>(take((count + 1) / 2)); }
};

// ---------------------------------------------------------------------------- contact
enum Mode : int { separating = 0, sliding = 1, clamping = 2 };

// Contact i owns rows row[i] .. row[i] + dim[i] - 1 of every stacked contact vector, its normal
// last: dim 3 = (T1, T2, N), dim 2 = (T, N), dim 1 = (N) (a joint limit: no friction).
struct Contacts {
  int nc, n;        // number of contacts; n = sum of dim
  const int *dim;   // (nc)
  const int *row;   // (nc)
  const double *mu; // (nc) friction coefficients; ignored where dim = 1
};

enum GradientKind : int {
  grad_exact = 0, grad_signorini = 1, grad_full_cone = 2,
  grad_randomized_zeroth = 3, grad_randomized_first = 4, grad_bundled = 5
};

// Whether a mask of contacts (nc), null for all, has contact i.
inline bool has(const unsigned char *mask, int i) { return !mask || mask[i]; }

// A gradient is pure data; the core dispatches on kind.
struct Gradient {
  int kind = grad_exact;
  double rho = 0;              // [J], or the factor r of rho_i = r v_ref^2 / A_NN,i if relative
  double delta = 0;            // [m/s] normal free-velocity offset
  int relative = 0;
  double v_ref = 1;            // [m/s]
  int samples = 0;             // randomized and bundled
  double std = 0;              // randomized: [m/s] on b;  bundled: [m] offset of the contact point
  std::uint64_t seed = 0;
  double threshold = 0;        // bundled: [N s] impulse above which a contact triggers
  double eps = 0;              // full-cone: [m/s] smoothing of ||sigma_T||; 0: the rule of contact_relaxed.inc
};

enum HardStatus : int { hard_solved = 0, hard_inaccurate = 1, hard_infeasible = 2, hard_bad_input = 3 };
struct HardInfo { int status, sweeps, polished; double residual; };

enum RelaxedStatus : int { relaxed_solved = 0, relaxed_not_converged = 1, relaxed_infeasible_root = 2 };
struct RelaxedInfo {
  int status, iterations, continuations;
  double residual;
  int fallbacks = 0;  // contacts (or samples) that fell back to, or were left out of, the hard law's own sensitivity
};

// ---------------------------------------------------------------------------- system
struct Tree;  // tree.hpp

// terms(q, v) -> M, c, B, J, phi with  M(q) dv/dt + c(q, v) = B(q) u + J(q)' lambda/h.
// theta (np) are the system's own parameters, e.g. the logarithm of mass scales.
struct System {
  const void *self = nullptr;
  const Tree *tree = nullptr;                // the bodies of a kinematic tree; null for any other system
  int nq = 0, nv = 0, nu = 0, np = 0, nc = 0, n = 0;
  const int *dim = nullptr, *row = nullptr;  // contact layout, see Contacts
  std::size_t workspace = 0;                 // doubles that the callbacks below take from the arena
  // Structure; all of it may be left out (a dense M, contacts that feel every velocity, all of q curved).
  const int *up = nullptr;                   // (nv) M_kj, j < k, is zero unless j is on the path up[k], up[up[k]], ...
  // velocities that contact i feels and all on their paths, ascending: support[support_first[i] .. support_first[i + 1] - 1]
  const int *support = nullptr, *support_first = nullptr;
  int limits = 0;                            // the last contacts are limits of joints: J_i has one entry, at the last of these
  int guards = 0;                            // contacts before those that shall not happen: a relaxed law sees them when near
  double usual_rho = 0;                      // [J] relaxed laws are seldom wider: see linearize.inc
  int optional() const { return guards + limits; }
  int curved = -1;                           // q (+) dq is q + dq but for the joints with velocities
  const int *curved_first = nullptr, *curved_size = nullptr;  // curved_first[i] .. + curved_size[i] - 1, i < curved

  void (*terms)(const void *self, const double *theta, const double *q, const double *v,
                double *M, double *c, double *B, double *J, double *phi, Arena) = nullptr;
  // With the residual  r = M(q) a + c(q, v) - B(q) u - J(q)' f  (a, u, f held) and the contact
  // velocity  w_c = J(q) w  (w held):
  //   r_q (nv,nv), r_v (nv,nv), Jw_q (n,nv), phi_q (nc,nv); tangent coordinates of q.
  // `kept` is the memory that `terms` had at the same theta, q, v, as it left it and as it stays.
  // If r_theta is not null also r_theta (nv,np), Jw_theta (n,np), phi_theta (nc,np), with the damping of joint_forces
  // at w in place of v. Contacts that are not in `mask` (nc) have no force and need no rows; null: all are in it.
  void (*derivatives)(const void *self, const double *theta, const double *q, const double *v,
                      const double *a, const double *u, const double *f, const double *w,
                      double *r_q, double *r_v, double *Jw_q, double *phi_q,
                      double *r_theta, double *Jw_theta, double *phi_theta, const unsigned char *mask, Arena kept,
                      Arena) = nullptr;
  // The same rows transposed, without forming them, for y (nv), z (n), zeta (nc); null: from the rows.
  //   g_q = r_q' y + Jw_q' z + phi_q' zeta,   g_v = r_v' y,   g_theta = r_theta' y + Jw_theta' z + phi_theta' zeta
  void (*transposed_derivatives)(const void *self, const double *theta, const double *q, const double *v,
                                 const double *a, const double *u, const double *f, const double *w,
                                 const double *y, const double *z, const double *zeta,
                                 double *g_q, double *g_v, double *g_theta, Arena kept, Arena) = nullptr;
  // Forces on single velocities that the step takes at its end (joint_forces.inc); may be null:
  //   damping d, stiffness k, spring k (q - rest), friction (nv) each. c holds d v + k (q - rest), but no friction.
  void (*joint_forces)(const void *self, const double *theta, const double *q, double *damping, double *stiffness,
                       double *spring, double *friction) = nullptr;
  bool has_friction = false;
  double slip_speed = 0;  // [rad/s or m/s] of friction
  // Manifold of q; all of these null where q is Euclidean (nq = nv).
  void (*integrate)(const void *self, const double *q, const double *dq, double *q_out) = nullptr;
  void (*difference)(const void *self, const double *q0, const double *q1, double *dq) = nullptr;  // q1 (-) q0
  // q_out = q (+) dq: d q_out / d q and d q_out / d dq, tangent (nv,nv) each.
  void (*integrate_jacobians)(const void *self, const double *q, const double *dq, double *Dq, double *Dv) = nullptr;
  // Gradients between coordinates of q and the tangent space there: g (nv) = (d (q (+) xi) / d xi)' g_q, and
  // g_q (nq) = (d xi / d q')' g of xi = normalized(q') (-) q at q' = q, which may be off the manifold.
  void (*to_tangent)(const void *self, const double *q, const double *g_q, double *g) = nullptr;
  void (*to_coordinates)(const void *self, const double *q, const double *g, double *g_q) = nullptr;
  // d (q1 (-) q0) / d q1, tangent (nv,nv).
  void (*difference_jacobian)(const void *self, const double *q0, const double *q1, double *D) = nullptr;
};

// What one step needs besides state and control.
struct StepContext {
  const System *system;
  Contacts contacts;
  const double *theta;  // (np) or null
  double h;             // [s]
  const double *restitution = nullptr;  // (nc) coefficients, or null: none
  const double *optional_compliance = nullptr;  // (guards + limits) A_NN of these in one posture; null where there are none
};

// Closed-loop rollout; every pointer but those of the trajectory itself may be null.
struct RolloutInput {
  int N;
  const double *X;     // (N+1,nx) nominal states, needed with K
  const double *k, *K; // (N,nu), (N,nu,ndx)
  const double *lower, *upper;  // (nu)
  const double *gaps;  // (N,ndx) step(X_k, U_k) (-) X_{k+1}
  const double *warm;  // (N,n) nominal impulses
  const double *previous;  // (n) impulse before the first step, where its solve starts without `warm`
};

// A motion as a rollout returned it, and cotangents g_states of its states.
struct TransposedRollout {
  int N;
  std::uint64_t first;                          // knot of states[0]: it selects the samples of randomized gradients
  const double *states, *controls;              // (N+1,nx), (N,nu)
  const double *impulses, *velocities;          // (N,n)
  const int *modes;                             // (N,nc)
  const double *g_states;                       // (N+1,ndx)
};

// One knot of a linearized rollout: inputs that were linearized about, and what was found.
struct LinearizedKnot {
  const double *x, *u, *lambda, *sigma;  // sigma, lambda: the hard solution
  const int *mode;
  double *v_z;      // dv+ at frozen impulse per (dx, du), (nv,width) with rows width = padded(ndx + nu) apart
  double *sigma_z;  // contact velocity at frozen impulse, (n,width)
  double *Z, *Y;    // L'^-1 J' with A = Z' Z, and M^-1 J' = L^-1 Z (nv,n)
  double *b;        // (n)
  double *D_q, *D_v;// of q+ = q (+) dq (nv,nv)
  unsigned char *formed;  // (nc) whether sigma_z, Z and Y have the rows and columns of contact i

  static int width(const System &s) { return (2 * s.nv + s.nu + 3) & ~3; }
};

// ---------------------------------------------------------------------------- cost
// Residuals r of a term; widths of weight (w) and of a row of the reference (ref).
enum CostKind : int {
  cost_state,           // x (-) ref                                                          w ndx,  ref nx
  cost_control,         // u - ref                                                            w nu,   ref nu
  cost_control_limits,  // how far u is outside ref = (lower, upper)                          w nu,   ref 2 nu
  cost_entries,         // x_i - ref of `count` entries i                                     w count, ref count
  cost_entry_limits,    // how far x_i is outside ref = (lower, upper)                        w count, ref 2 count
  // of a kinematic tree, see cost_robot.inc
  cost_pose,            // position - ref, log(R_ref' R) of a point fixed to a body           w 6,    ref 7
  cost_twist,           // linear and angular velocity - ref of such a point                  w 6,    ref 6
  cost_com,             // centre of mass - ref                                               w 3,    ref 3
  cost_slip,            // sqrt(S(phi)) sigma_T of `count` contacts                           w count
  cost_air,             // tanh(phi / length) - ref of `count` contacts                       w count, ref count
  cost_kinds
};
enum TwistFrame : int { twist_world = 0, twist_yaw = 1, twist_body = 2 };

// 1/2 sum over active knots of r' diag(weight) r.
struct CostTerm {
  int kind;
  const double *weight;
  const double *reference;      // one row for all knots or one for each
  int reference_stride;         // 0 or the width of a row
  const unsigned char *active;  // (N+1), or (N) for terms in u
  int count;                    // entries or contacts
  const int *index;             // entries: (2 count) in x, then in dx; contacts: (count); pose: body; twist: body, frame
  const double *parameter;      // pose, twist: the point in the body frame (3) [m]; slip: [1/m]; air: length [m]
};

// ---------------------------------------------------------------------------- Riccati
// All (N, ...) stacks, l_x and l_xx (N+1, ...), Hessians symmetric. l_ux, gaps, lower, upper may be null; U is needed
// with limits.
struct RiccatiInput {
  int N, ndx, nu;
  const double *f_x, *f_u, *l_x, *l_u, *l_xx, *l_uu, *l_ux, *gaps, *U, *lower, *upper;
  // Where dq+ = D_q dq + h D_v dv+ holds in f_x, f_u, with the joints of `system`; null: nothing is known of them.
  const System *system;
  const double *D_q, *D_v;  // (N,nv,nv)
  double h;                 // [s]
};

}  // namespace cito
