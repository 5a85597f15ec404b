// Catch2 v2 or v3, whichever is installed.
#pragma once

#ifdef LOCKSTEP_CATCH3
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
