# Tests. tests/<folder>/test_<name>.c is one cmocka program, tests/<folder>/test_<name>.sh one bash script; both are the
# ctest <folder>/<name>. Labels: nightly (tests/nightly), timing (tests/timing). Exit status 77 means skipped.

# What tests call to run the command: the binary, or a wrapper when it was built for another machine.
set(tenon_command ${CMAKE_BINARY_DIR}/tenon)
set(tenon_test_timeout 240)
if(CMAKE_CROSSCOMPILING_EMULATOR)
  set(tenon_command ${CMAKE_BINARY_DIR}/tenon-emulated)
  list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " tenon_emulator)
  file(GENERATE OUTPUT ${tenon_command} CONTENT "#!/bin/sh\nexec ${tenon_emulator} ${CMAKE_BINARY_DIR}/tenon \"$@\"\n"
       FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  set(tenon_test_timeout 3600)
endif()
set(tenon_test_environment "TENON_SHARED=${TENON_SHARED}" "TENON_PICTURES=${tenon_pictures}" "TENON_SOURCE=${CMAKE_SOURCE_DIR}"
    "TENON_BUILD=${CMAKE_BINARY_DIR}" "TENON_CC=${CMAKE_C_COMPILER}" "TENON_SANITIZE=${TENON_SANITIZE}"
    "TENON=${tenon_command}" "TENON_EMULATED=${tenon_emulator}" "UBSAN_OPTIONS=print_stacktrace=1")

# Adds ctest `name` that runs the rest of the arguments.
function(tenon_add_test name)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "${tenon_test_environment}" SKIP_RETURN_CODE 77
                                          TIMEOUT ${tenon_test_timeout})
  if(name MATCHES "^nightly/")
    set_tests_properties(${name} PROPERTIES LABELS nightly TIMEOUT 7200)
  elseif(name MATCHES "^timing/")
    set_tests_properties(${name} PROPERTIES LABELS timing RUN_SERIAL ON)
  endif()
endfunction()

find_path(CMOCKA_INCLUDE_DIR cmocka.h)
find_library(CMOCKA_LIBRARY cmocka)
file(GLOB tenon_c_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*/test_*.c)
if(tenon_c_tests AND NOT (CMOCKA_INCLUDE_DIR AND CMOCKA_LIBRARY))
  message(WARNING "cmocka was not found (Debian: libcmocka-dev): the C tests are not built")
  set(tenon_c_tests)
endif()

file(GLOB tenon_support_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/support/*.c)
if(tenon_support_sources)
  add_library(tenon_test_support STATIC ${tenon_support_sources})
  target_include_directories(tenon_test_support PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/tests)
  target_compile_definitions(tenon_test_support PRIVATE TENON_SHARED_DIR="${TENON_SHARED}" TENON_BINARY="${tenon_command}")
  target_include_directories(tenon_test_support SYSTEM PRIVATE ${CMOCKA_INCLUDE_DIR})
  target_link_libraries(tenon_test_support PRIVATE tenon_flags PUBLIC tenon_static)
endif()

# A test program: the static library's insides are open to it.
function(tenon_test_program target)
  add_executable(${target} ${ARGN})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/tests)
  target_include_directories(${target} SYSTEM PRIVATE ${CMOCKA_INCLUDE_DIR})
  target_compile_definitions(${target} PRIVATE TENON_SHARED_DIR="${TENON_SHARED}" TENON_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                             TENON_BINARY="${tenon_command}")
  if(TARGET tenon_test_support)
    target_link_libraries(${target} PRIVATE tenon_test_support)
  endif()
  target_link_libraries(${target} PRIVATE tenon_static tenon_flags Threads::Threads m)
endfunction()

foreach(source IN LISTS tenon_c_tests)
  string(REGEX REPLACE "^.*/([^/]+)/test_([^/]+)\\.c$" "\\1/\\2" name ${source})
  string(REPLACE "/" "_" target "test/${name}")
  tenon_test_program(${target} ${source})
  target_link_libraries(${target} PRIVATE ${CMOCKA_LIBRARY})
  tenon_add_test(${name} ${target})
endforeach()

file(GLOB tenon_sh_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*/test_*.sh)
foreach(source IN LISTS tenon_sh_tests)
  string(REGEX REPLACE "^.*/([^/]+)/test_([^/]+)\\.sh$" "\\1/\\2" name ${source})
  tenon_add_test(${name} bash ${source})
endforeach()

# The program that tests/nightly/meaning/meaning.py runs models with.
add_executable(meaning-driver ${CMAKE_SOURCE_DIR}/tests/nightly/meaning/driver.c)
target_link_libraries(meaning-driver PRIVATE tenon_static tenon_flags m)

# The program that tests/fuzz/graphs.py judges graphs with.
tenon_test_program(graphs-driver ${CMAKE_SOURCE_DIR}/tests/fuzz/graphs.c)

# Fuzz targets: with TENON_FUZZ libFuzzer programs; always a ctest fuzz/<name> that replays tests/fuzz/corpus/<name>/.
file(GLOB tenon_fuzz_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/fuzz_*.c)
foreach(source IN LISTS tenon_fuzz_sources)
  string(REGEX REPLACE "^.*/fuzz_([^/]+)\\.c$" "\\1" name ${source})
  tenon_test_program(replay_${name} ${source} ${CMAKE_SOURCE_DIR}/tests/fuzz/replay.c)
  tenon_add_test(fuzz/${name} replay_${name} ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name})
  if(TENON_FUZZ)
    tenon_test_program(fuzz_${name} ${source})
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  endif()
endforeach()

# Plugins for tests of --plugin: shared libraries that see only the public headers; their tn_ symbols are the program's.
file(GLOB tenon_plugin_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/plugin/*.c)
foreach(source IN LISTS tenon_plugin_sources)
  get_filename_component(name ${source} NAME_WE)
  add_library(plugin_${name} MODULE ${source})
  set_target_properties(plugin_${name} PROPERTIES PREFIX "" SUFFIX ".so")
  target_include_directories(plugin_${name} PRIVATE ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(plugin_${name} PRIVATE tenon_flags)
  if(APPLE)
    target_link_options(plugin_${name} PRIVATE -undefined dynamic_lookup)
  endif()
endforeach()

# Examples see only the public headers; each must exit 0.
file(GLOB tenon_examples CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/examples/*.c)
foreach(source IN LISTS tenon_examples)
  get_filename_component(name ${source} NAME_WE)
  add_executable(example_${name} ${source})
  target_link_libraries(example_${name} PRIVATE tenon_static tenon_flags m)
  tenon_add_test(examples/${name} example_${name})
  set_tests_properties(examples/${name} PROPERTIES WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
endforeach()
