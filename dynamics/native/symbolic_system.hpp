// A system described by CasADi expressions. Each of its functions is a Program: generated C that
// was compiled and loaded, or the tape of scalar operations that CasADi evaluates, run here.
// Either way it reads and writes caller-owned memory only: any number of threads, no Python.
#pragma once
#include <cmath>
#include <vector>

#include "core.hpp"

namespace cito {

// Scalar operations by CasADi's names (casadi.OP_<name>), a and b the operands.
#define CITO_TAPE_OPERATIONS(X)                                                                     \
  X(ASSIGN, a) X(ADD, a + b) X(SUB, a - b) X(MUL, a * b) X(DIV, a / b) X(NEG, -a) X(INV, 1 / a)     \
  X(SQ, a * a) X(TWICE, 2 * a) X(SQRT, std::sqrt(a)) X(EXP, std::exp(a)) X(LOG, std::log(a))        \
  X(POW, std::pow(a, b)) X(CONSTPOW, std::pow(a, b)) X(EXPM1, std::expm1(a))                        \
  X(LOG1P, std::log1p(a)) X(HYPOT, std::hypot(a, b)) X(ERF, std::erf(a))                            \
  X(SIN, std::sin(a)) X(COS, std::cos(a)) X(TAN, std::tan(a))                                       \
  X(ASIN, std::asin(a)) X(ACOS, std::acos(a)) X(ATAN, std::atan(a)) X(ATAN2, std::atan2(a, b))      \
  X(SINH, std::sinh(a)) X(COSH, std::cosh(a)) X(TANH, std::tanh(a))                                 \
  X(ASINH, std::asinh(a)) X(ACOSH, std::acosh(a)) X(ATANH, std::atanh(a))                           \
  X(LT, a < b) X(LE, a <= b) X(EQ, a == b) X(NE, a != b)                                            \
  X(NOT, !a) X(AND, a && b) X(OR, a || b) X(IF_ELSE_ZERO, a ? b : 0)                                \
  X(FLOOR, std::floor(a)) X(CEIL, std::ceil(a)) X(FABS, std::fabs(a))                               \
  X(SIGN, a < 0 ? -1 : a > 0 ? 1 : a) X(COPYSIGN, std::copysign(a, b))                              \
  X(FMIN, std::fmin(a, b)) X(FMAX, std::fmax(a, b))                                                 \
  X(FMOD, std::fmod(a, b)) X(REMAINDER, std::remainder(a, b))

enum TapeOperation : int {
#define X(name, formula) tape_##name,
  CITO_TAPE_OPERATIONS(X)
#undef X
  tape_CONST, tape_INPUT, tape_OUTPUT
};

inline std::vector<const char *> tape_operation_names() {
#define X(name, formula) #name,
  return {CITO_TAPE_OPERATIONS(X) "CONST", "INPUT", "OUTPUT"};
#undef X
}

// w[out] = op(w[in0], w[in1]);  CONST: w[out] = constant;  INPUT: w[out] = arg[in0][in1];
// OUTPUT: res[out][in1] = w[in0].
struct Instruction {
  int op, out, in0, in1;
  double constant;
};

struct Program {
  using Compiled = int (*)(const double **arg, double **res, long long *iw, double *w, int mem);
  Compiled compiled = nullptr;
  std::vector<Instruction> tape;  // where compiled is null
  std::size_t work = 0;           // doubles

  // A null input reads as zeros, a null output is not written.
  void run(const double **arg, double **res, double *w) const {
    if (compiled) {
      compiled(arg, res, nullptr, w, 0);
      return;
    }
    for (const Instruction &i : tape) switch (i.op) {
        case tape_CONST: w[i.out] = i.constant; break;
        case tape_INPUT: w[i.out] = arg[i.in0] ? arg[i.in0][i.in1] : 0; break;
        case tape_OUTPUT:
          if (res[i.out]) res[i.out][i.in1] = w[i.in0];
          break;
#define X(name, formula)                                   \
  case tape_##name: {                                      \
    const double a = w[i.in0], b = w[i.in1];               \
    (void)a, (void)b;                                      \
    w[i.out] = formula;                                    \
    break;                                                 \
  }
          CITO_TAPE_OPERATIONS(X)
#undef X
      }
  }
};

struct SymbolicSystem {
  Program terms;                  // (theta, q, v) -> M, c, B, J, phi
  Program derivatives;            // (theta, q, v, a, u, f, w) -> r_q, r_v, Jw_q, phi_q
  Program parameter_derivatives;  // the same inputs -> r_theta, Jw_theta, phi_theta
  std::vector<double> nominal;    // (np) parameter values at theta = 0
  std::vector<int> dim, row;      // contact layout

  // The parameters nominal + theta; null where there are none.
  const double *parameters(const double *theta, Arena &arena) const {
    const std::size_t np = nominal.size();
    if (np == 0) return nullptr;
    double *p = arena.take(np);
    for (std::size_t i = 0; i < np; ++i) p[i] = nominal[i] + (theta ? theta[i] : 0);
    return p;
  }

  static void evaluate_terms(const void *self, const double *theta, const double *q, const double *v, double *M,
                             double *c, double *B, double *J, double *phi, Arena arena) {
    const auto &s = *static_cast<const SymbolicSystem *>(self);
    const double *arg[] = {s.parameters(theta, arena), q, v};
    double *res[] = {M, c, B, J, phi};
    s.terms.run(arg, res, arena.take(s.terms.work));
  }

  static void evaluate_derivatives(const void *self, const double *theta, const double *q, const double *v,
                                   const double *a, const double *u, const double *f, const double *w, double *r_q,
                                   double *r_v, double *Jw_q, double *phi_q, double *r_theta, double *Jw_theta,
                                   double *phi_theta, const unsigned char *, Arena, Arena arena) {
    const auto &s = *static_cast<const SymbolicSystem *>(self);
    const double *arg[] = {s.parameters(theta, arena), q, v, a, u, f, w};
    double *res[] = {r_q, r_v, Jw_q, phi_q};
    double *work = arena.take(s.derivatives.work > s.parameter_derivatives.work ? s.derivatives.work
                                                                                : s.parameter_derivatives.work);
    s.derivatives.run(arg, res, work);
    if (!r_theta) return;
    double *res_theta[] = {r_theta, Jw_theta, phi_theta};
    s.parameter_derivatives.run(arg, res_theta, work);
  }

  // This object behind the interface of the core; it must outlive the result.
  System interface(int nv, int nu) const {
    System s;
    s.self = this;
    s.nq = s.nv = nv;
    s.nu = nu;
    s.np = int(nominal.size());
    s.nc = int(dim.size());
    for (int d : dim) s.n += d;
    s.dim = dim.data();
    s.row = row.data();
    for (std::size_t work : {terms.work, derivatives.work, parameter_derivatives.work})
      if (work > s.workspace) s.workspace = work;
    s.workspace += nominal.size();
    s.terms = evaluate_terms;
    s.derivatives = evaluate_derivatives;
    return s;
  }
};

}  // namespace cito
