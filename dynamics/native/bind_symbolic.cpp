// Python's way to a symbolic system: programs made from CasADi functions, and their assembly.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "symbolic_system.hpp"
#include "system_handle.hpp"

namespace cito {

static Program compiled_program(std::uintptr_t address, std::size_t work) {
  Program program;
  program.compiled = reinterpret_cast<Program::Compiled>(address);
  program.work = work;
  return program;
}

// operation, out, in0, in1, constant: one entry per instruction.
static Program tape_program(IntIn<1> operation, IntIn<1> out, IntIn<1> in0, IntIn<1> in1, In<1> constant,
                            std::size_t work) {
  const std::size_t count = operation.size();
  if (out.size() != count || in0.size() != count || in1.size() != count || constant.size() != count)
    throw nb::value_error("`operation`, `out`, `in0`, `in1`, `constant` must be equally long");
  Program program;
  program.work = work;
  program.tape.reserve(count);
  for (std::size_t k = 0; k < count; ++k)
    program.tape.push_back({operation.data()[k], out.data()[k], in0.data()[k], in1.data()[k], constant.data()[k]});
  return program;
}

static SystemHandle symbolic_system(const Program &terms, const Program &derivatives,
                                    const Program &parameter_derivatives, int nv, int nu, In<1> nominal,
                                    IntIn<1> contact_dims) {
  auto system = std::make_shared<SymbolicSystem>();
  system->terms = terms;
  system->derivatives = derivatives;
  system->parameter_derivatives = parameter_derivatives;
  system->nominal.assign(nominal.data(), nominal.data() + nominal.size());
  int row = 0;
  for (std::size_t i = 0; i < contact_dims.size(); ++i) {
    system->dim.push_back(contact_dims.data()[i]);
    system->row.push_back(row);
    row += contact_dims.data()[i];
  }
  const System interface = system->interface(nv, nu);
  return {interface, std::move(system)};
}

void bind_symbolic(nb::module_ &m) {
  nb::class_<Program>(m, "Program", "A function of a symbolic system: compiled code or a tape of operations.");
  m.def("compiled_program", &compiled_program, nb::arg("address"), nb::arg("work"),
        "The function at `address` (CasADi's generated C signature); its library must stay loaded.");
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
