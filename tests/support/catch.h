// Catch2 v2 or v3, whichever is installed. CHECK stays Lockstep's own (core/check.h); tests use
// REQUIRE.
#pragma once

#include "core/check.h"

#pragma push_macro("CHECK")
#undef CHECK
#ifdef LOCKSTEP_CATCH3
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
#pragma pop_macro("CHECK")
