// What the program tells its caller.
#pragma once

namespace lockstep::cli {

enum class ExitStatus {
  good = 0,
  finding = 1,    // a verification failed
  bad_input = 2,  // usage or input; the message on stderr names the place and what was expected
  missing = 3,    // the environment lacks something that the message names
};

}  // namespace lockstep::cli
