// Python's way to a symbolic system: programs made from CasADi functions, and their assembly.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "symbolic_system.hpp"
#include "system_handle.hpp"

namespace cito {

static std::size_t checked_work(std::size_t work) { return checked_count("work", work); }

static Program compiled_program(std::uintptr_t address, std::size_t work) {
  if (!address) refuse("address", "not be null");
  Program program;
  program.compiled = reinterpret_cast<Program::Compiled>(address);
  program.work = checked_work(work);
  return program;
}

// Raises where an instruction leaves the registers w[0], ..., w[work - 1].
static void check_registers(const Program &program) {
  const int last = int(program.work) - 1;
  for (const Instruction &i : program.tape) {
    if (i.op < 0 || i.op > tape_OUTPUT) refuse("operation", "be a number of tape_operations, got " + std::to_string(i.op));
    const bool computes = i.op < tape_CONST, writes = i.op != tape_OUTPUT, reads = computes || !writes;
    auto sound = [&](int number, bool is_register) { return number >= 0 && (!is_register || number <= last); };
    if (!sound(i.out, writes)) refuse("out", "be a register of `work`, or an output, got " + std::to_string(i.out));
    if (!sound(i.in0, reads)) refuse("in0", "be a register of `work`, or an input, got " + std::to_string(i.in0));
    if (!sound(i.in1, computes)) refuse("in1", "be a register of `work`, or an entry, got " + std::to_string(i.in1));
  }
}

// operation, out, in0, in1, constant: one entry per instruction.
static Program tape_program(IntIn<1> operation, IntIn<1> out, IntIn<1> in0, IntIn<1> in1, In<1> constant,
                            std::size_t work) {
  const std::size_t count = operation.size();
  if (out.size() != count || in0.size() != count || in1.size() != count || constant.size() != count)
    throw nb::value_error("`operation`, `out`, `in0`, `in1`, `constant` must be equally long");
  Program program;
  program.work = checked_work(work);
  program.tape.reserve(count);
  for (std::size_t k = 0; k < count; ++k)
    program.tape.push_back({operation.data()[k], out.data()[k], in0.data()[k], in1.data()[k], constant.data()[k]});
  check_registers(program);
  return program;
}

// Which inputs and outputs a tape touches, against their numbers of entries. Compiled code is taken on trust.
static void check_interface(const char *name, const Program &program, const std::vector<std::size_t> &inputs,
                            const std::vector<std::size_t> &outputs) {
  auto fits = [](const std::vector<std::size_t> &lengths, int which, int entry) {
    return std::size_t(which) < lengths.size() && std::size_t(entry) < lengths[which];
  };
  for (const Instruction &i : program.tape)
    if ((i.op == tape_INPUT && !fits(inputs, i.in0, i.in1)) || (i.op == tape_OUTPUT && !fits(outputs, i.out, i.in1)))
      refuse(name, "read and write entries that the system has, got " +
                       std::string(i.op == tape_INPUT ? "input (" : "output (") +
                       std::to_string(i.op == tape_INPUT ? i.in0 : i.out) + ", " + std::to_string(i.in1) + ")");
}

static SystemHandle symbolic_system(const Program &terms, const Program &derivatives,
                                    const Program &parameter_derivatives, int nv, int nu, In<1> nominal,
                                    IntIn<1> contact_dims) {
  if (nv < 0 || nu < 0) refuse(nv < 0 ? "nv" : "nu", "be >= 0, got " + std::to_string(nv < 0 ? nv : nu));
  auto system = std::make_shared<SymbolicSystem>();
  const std::size_t V = checked_size("nv", nv), U = checked_size("nu", nu), P = checked_size("nominal", nominal.size());
  const std::size_t n = read_layout("contact_dims", contact_dims, system->dim, system->row), nc = contact_dims.size();
  check_interface("terms", terms, {P, V, V}, {V * V, V, V * U, n * V, nc});
  const std::vector<std::size_t> inputs = {P, V, V, V, U, n, V};
  check_interface("derivatives", derivatives, inputs, {V * V, V * V, n * V, nc * V});
  check_interface("parameter_derivatives", parameter_derivatives, inputs, {V * P, n * P, nc * P});
  system->terms = terms;
  system->derivatives = derivatives;
  system->parameter_derivatives = parameter_derivatives;
  system->nominal.assign(nominal.data(), nominal.data() + nominal.size());
  const System interface = system->interface(nv, nu);
  return {interface, std::move(system)};
}

void bind_symbolic(nb::module_ &m) {
  nb::class_<Program>(m, "Program", "A function of a symbolic system: compiled code or a tape of operations.");
  m.def("compiled_program", &compiled_program, nb::arg("address"), nb::arg("work"),
        "The function at `address` (CasADi's generated C signature) with its number of doubles of workspace.\n\n"
        "Neither can be checked: an address that is no such function, a library that does not stay loaded or a\n"
        "`work` that is too small ends the process.");
  m.def("tape_program", &tape_program, nb::arg("operation"), nb::arg("out"), nb::arg("in0"), nb::arg("in1"),
        nb::arg("constant"), nb::arg("work"), "Instructions, one entry per array; see tape_operations.");
  m.def("tape_operations", [] {
    std::vector<std::string> names;
    for (const char *name : tape_operation_names()) names.emplace_back(name);
    return names;
  }, "Names of the operations in the order of their numbers.");
  m.def("symbolic_system", &symbolic_system, nb::arg("terms"), nb::arg("derivatives"),
        nb::arg("parameter_derivatives"), nb::arg("nv"), nb::arg("nu"), nb::arg("nominal"), nb::arg("contact_dims"));
}

}  // namespace cito
