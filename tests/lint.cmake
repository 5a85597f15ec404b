# Tests that read the sources and run nothing of them.

add_library(lockstep_tidy STATIC tidy/text.cpp tidy/file_rules.cpp tidy/tree_rules.cpp)
target_link_libraries(lockstep_tidy PUBLIC lockstep_flags)
add_executable(tidy tidy/tidy.cpp)
target_link_libraries(tidy PRIVATE lockstep_tidy)
add_test(NAME tidy COMMAND tidy ${CMAKE_SOURCE_DIR})
add_executable(test_tidy tidy/tidy_test.cpp)
target_link_libraries(test_tidy PRIVATE lockstep_tidy)
lockstep_catch_test(unit.tidy test_tidy unit)

add_test(NAME format COMMAND ${CMAKE_SOURCE_DIR}/scripts/format --check)
set_tests_properties(format PROPERTIES SKIP_RETURN_CODE 77)

# Each header compiles alone. One that a source includes first, its own, has been compiled so. Built
# by its test only.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}
     ${CMAKE_SOURCE_DIR}/src/*.h ${CMAKE_SOURCE_DIR}/model/*.h ${CMAKE_SOURCE_DIR}/oracle/*.h
     ${CMAKE_SOURCE_DIR}/sim/*.h ${CMAKE_SOURCE_DIR}/reports/*.h)
foreach(header ${headers})
  string(REGEX REPLACE "h$" "cpp" own_source ${header})
  if(EXISTS ${CMAKE_SOURCE_DIR}/${own_source})
    continue()
  endif()
  set(source ${CMAKE_BINARY_DIR}/headers/${header}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n")
  list(APPEND header_sources ${source})
endforeach()
add_library(headers_alone OBJECT EXCLUDE_FROM_ALL ${header_sources})
target_link_libraries(headers_alone PRIVATE lockstep_flags)
target_compile_options(headers_alone PRIVATE -O0)
add_test(NAME headers_alone
         COMMAND ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --target headers_alone)

set_tests_properties(tidy format headers_alone PROPERTIES LABELS lint)

add_test(NAME digests COMMAND ${CMAKE_SOURCE_DIR}/scripts/compare_digests)
set_tests_properties(digests PROPERTIES LABELS scenario SKIP_RETURN_CODE 77)
