#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>

#include "bindings.hpp"

namespace cito {

// Workspaces up to this many doubles (32 MB) are kept per thread: a call of a few microseconds must not pay for
// clearing memory.
static constexpr std::size_t kept_workspace = 1 << 22;

static Arena take_workspace(std::size_t size, std::vector<double> &large) {
  static thread_local std::vector<double> kept;
  std::vector<double> &memory = size > kept_workspace ? large : kept;
  size += arena_slack;
  if (memory.size() < size) memory.resize(size);
  return arena_over(memory);
}

void parallel_for(int count, int threads, std::size_t workspace, const std::function<void(int, Arena)> &body) {
  if (threads < 1) refuse("threads", "be >= 1, got " + std::to_string(threads));
  if (count < 1) return;
  auto share = [&](int first, int last) {
    std::vector<double> large;
    const Arena arena = take_workspace(workspace, large);
    for (int i = first; i < last; ++i) body(i, arena);
  };
  if (threads > 1) threads = std::min({threads, count, std::max(1, int(std::thread::hardware_concurrency()))});
  if (threads == 1) return share(0, count);

  std::exception_ptr failure;
  std::mutex guard;
  auto part = [&](int t) {
    try {
      const long long all = count;
      share(int(all * t / threads), int(all * (t + 1) / threads));
    } catch (...) {
      std::lock_guard<std::mutex> lock(guard);
      failure = std::current_exception();
    }
  };
  std::vector<std::thread> pool;
  int started = 1;
  try {
    pool.reserve(threads);
    for (; started < threads; ++started) pool.emplace_back(part, started);
  } catch (...) {
    // The system gives no further thread: this one does the remaining parts.
  }
  for (int t = started; t < threads; ++t) part(t);
  part(0);
  for (std::thread &thread : pool) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace cito
