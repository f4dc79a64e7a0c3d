// A system as Python holds it: the interface, and whatever keeps its data alive.
#pragma once
#include <memory>

#include "core.hpp"

namespace cito {
struct SystemHandle {
  System system;
  std::shared_ptr<void> storage;
};
}  // namespace cito
