#include "cli/doctor_command.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "cli/terminal.h"
#include "device/cuda_accelerator.h"
#include "reports/console.h"
#include "reports/result_json.h"

namespace lockstep::cli {
namespace {

struct Finding {
  std::string what;
  bool present = false;
  std::string detail;
};

Finding compiler() {
#ifdef __clang__
  return {"compiler", true, "Clang " __clang_version__};
#else
  return {"compiler", true, "GCC " __VERSION__};
#endif
}

Finding processor() {
  __builtin_cpu_init();
  std::string missing;
  if (!__builtin_cpu_supports("avx2")) missing += " avx2";
  if (!__builtin_cpu_supports("fma")) missing += " fma";
  const unsigned cores = std::thread::hardware_concurrency();
  if (missing.empty())
    return {"processor", true, fmt::format("x86-64-v3 (avx2, fma), {} cores", cores)};
  return {
      "processor", false,
      fmt::format("lacks{}: build without -march=x86-64-v3; the same bits then come slowly from "
                  "software fma",
                  missing)};
}

// The first folder of PATH, or of `also`, that holds the program.
std::string find_program(const std::string& program, const std::string& also) {
  const char* path = std::getenv("PATH");
  std::string folders = (path ? std::string(path) : std::string()) + ":" + also;
  while (!folders.empty()) {
    const std::string folder = folders.substr(0, folders.find(':'));
    folders.erase(0, folder.size() + 1);
    const std::string file = folder + "/" + program;
    if (!folder.empty() && access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

Finding program(const std::string& what, const std::string& name, const std::string& also,
                const std::string& without) {
  const std::string file = find_program(name, also);
  if (!file.empty()) return {what, true, file};
  return {what, false, fmt::format("no {} in PATH: {}", name, without)};
}

// What lacks first: the kernel's driver, its library, then whatever the CUDA runtime says.
Finding cuda_device() {
  std::error_code ignored;
  const Result<std::string> device = describe_cuda_device();
  if (device) return {"CUDA device", true, *device};
  std::string missing;
  if (!std::filesystem::exists("/dev/nvidia0", ignored)) {
    missing = "no /dev/nvidia0";
  } else if (void* driver = dlopen("libcuda.so.1", RTLD_LAZY)) {
    dlclose(driver);
    missing = "/dev/nvidia0 and libcuda.so.1 are there";
  } else {
    missing = "/dev/nvidia0 is there, but libcuda.so.1 cannot be loaded";
  }
  return {"CUDA device", false, missing + "; " + device.error().message};
}

std::vector<Finding> examine() {
  return {
      compiler(),
      processor(),
      program("CUDA toolkit", "nvcc", "/usr/local/cuda/bin", "GPU code is not built"),
      cuda_device(),
      {"store: memory", true, "built in"},
      program("store: redis", "redis-server", "/usr/sbin", "its tests are skipped"),
      program("store: mooncake", "mooncake_master", "", "its tests are skipped"),
  };
}

Json findings_json(const std::vector<Finding>& findings) {
  Json::Object envelope = reports::result_envelope("doctor", true);
  Json::Array list;
  for (const Finding& finding : findings) {
    list.push_back(Json::Object{
        {"what", finding.what}, {"present", finding.present}, {"detail", finding.detail}});
  }
  envelope.push_back({"findings", std::move(list)});
  return envelope;
}

}  // namespace

ExitStatus doctor_command(const DoctorArguments& arguments) {
  const std::vector<Finding> findings = examine();
  std::vector<std::vector<std::string>> rows{{"what", "there", "detail"}};
  for (const Finding& finding : findings) {
    rows.push_back({finding.what, finding.present ? "yes" : "no", finding.detail});
  }
  if (!arguments.quiet) fmt::print("{}", reports::aligned_table(rows, {false, false, false}));
  const bool written = arguments.json.empty() ||
                       write_output(arguments.json, to_pretty_text(findings_json(findings)));
  return written ? ExitStatus::good : ExitStatus::bad_input;
}

}  // namespace lockstep::cli
