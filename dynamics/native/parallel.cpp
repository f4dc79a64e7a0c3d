#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>

#include "time_stepping.hpp"

namespace cito {

// Workspaces are kept per thread: a call of a few microseconds must not pay for clearing memory.
static Arena thread_arena(std::size_t size) {
  static thread_local std::vector<double> memory;
  if (memory.size() < size) memory.resize(size);
  return {memory.data(), memory.data() + memory.size()};
}

void parallel_for(int count, int threads, std::size_t workspace, const std::function<void(int, Arena)> &body) {
  threads = std::max(1, std::min(threads, count));
  if (threads == 1) {
    const Arena arena = thread_arena(workspace);
    for (int i = 0; i < count; ++i) body(i, arena);
    return;
  }
  std::exception_ptr failure;
  std::mutex guard;
  auto share = [&](int t) {
    try {
      const Arena arena = thread_arena(workspace);
      for (int i = int(long(count) * t / threads); i < int(long(count) * (t + 1) / threads); ++i) body(i, arena);
    } catch (...) {
      std::lock_guard<std::mutex> lock(guard);
      failure = std::current_exception();
    }
  };
  std::vector<std::thread> pool;
  for (int t = 1; t < threads; ++t) pool.emplace_back(share, t);
  share(0);
  for (std::thread &thread : pool) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace cito
