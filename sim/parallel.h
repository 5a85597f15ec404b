// The same work for many items over several threads. What an item gives may depend on the item
// alone, so the number of threads changes nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace lockstep::sim {

// Calls work(i) once for each i below `count`. REQUIRES: jobs > 0.
template <class Work>
void for_each_parallel(std::size_t count, std::size_t jobs, const Work& work) {
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::jthread> threads;
  for (std::size_t job = 1; job < jobs; ++job) threads.emplace_back(run);
  run();
}

}  // namespace lockstep::sim
