#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include <unistd.h>

#include "bindings.hpp"

namespace cito {
namespace {

// Workspaces up to this many doubles (32 MB) are kept per thread: a call of a few microseconds must not pay for
// clearing memory.
constexpr std::size_t kept_workspace = 1 << 22;

Arena take_workspace(std::size_t size, std::vector<double> &large) {
  static thread_local std::vector<double> kept;
  std::vector<double> &memory = size > kept_workspace ? large : kept;
  size += arena_slack;
  if (memory.size() < size) memory.resize(size);
  return arena_over(memory);
}

// Work in parts that any thread may take; what a part throws is kept.
struct Job {
  const std::function<void(int)> &part;
  const int parts;
  std::atomic<int> next{0};
  int done = 0;
  std::exception_ptr failure;
  std::mutex guard;
  std::condition_variable all_done;

  Job(const std::function<void(int)> &part_, int parts_) : part(part_), parts(parts_) {}

  // Takes parts until none is left.
  void work() {
    for (int p = next++; p < parts; p = next++) {
      std::exception_ptr thrown;
      try {
        part(p);
      } catch (...) {
        thrown = std::current_exception();
      }
      std::lock_guard<std::mutex> lock(guard);
      if (thrown) failure = thrown;
      if (++done == parts) all_done.notify_all();
    }
  }

  void wait() {
    std::unique_lock<std::mutex> lock(guard);
    all_done.wait(lock, [&] { return done == parts; });
  }
};

// Threads that wait for jobs: one call of a tenth of a millisecond must not pay for starting threads. They are as many as
// any call has asked for, and never end. Whoever brings a job works on it too, so that it needs none of them.
class Pool {
 public:
  void run(const std::function<void(int)> &part, int parts, int helpers) {
    const auto job = std::make_shared<Job>(part, parts);
    {
      std::lock_guard<std::mutex> lock(guard_);
      start(helpers);
      for (int t = 0; t < std::min(helpers, started_); ++t) jobs_.push_back(job);
    }
    wake_.notify_all();
    job->work();
    job->wait();
    if (job->failure) std::rethrow_exception(job->failure);
  }

 private:
  std::mutex guard_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Job>> jobs_;
  int started_ = 0;

  void start(int wanted) {
    try {
      for (; started_ < wanted; ++started_) std::thread(&Pool::serve, this).detach();
    } catch (...) {
      // The system gives no further thread: those that there are do the work.
    }
  }

  void serve() {
    for (;;) {
      std::shared_ptr<Job> job;
      {
        std::unique_lock<std::mutex> lock(guard_);
        wake_.wait(lock, [&] { return !jobs_.empty(); });
        job = jobs_.front();
        jobs_.pop_front();
      }
      job->work();
    }
  }
};

// One for each process: a fork takes no threads along. It outlives everything, its threads may wait to the very end.
Pool &pool() {
  static std::mutex guard;
  static Pool *current = nullptr;
  static pid_t owner = 0;
  std::lock_guard<std::mutex> lock(guard);
  if (!current || owner != getpid()) current = new Pool, owner = getpid();
  return *current;
}

}  // namespace

void parallel_for(int count, int threads, std::size_t workspace, const std::function<void(int, Arena)> &body) {
  if (threads < 1) refuse("threads", "be >= 1, got " + std::to_string(threads));
  if (count < 1) return;
  const auto share = [&](int first, int last) {
    std::vector<double> large;
    const Arena arena = take_workspace(workspace, large);
    for (int i = first; i < last; ++i) body(i, arena);
  };
  if (threads > 1) threads = std::min({threads, count, std::max(1, int(std::thread::hardware_concurrency()))});
  if (threads == 1) return share(0, count);
  const int parts = std::min(count, 4 * threads);  // a thread that comes late, or is held up, leaves its share to others
  pool().run([&](int p) {
    const long long all = count;
    share(int(all * p / parts), int(all * (p + 1) / parts));
  }, parts, threads - 1);
}

}  // namespace cito
