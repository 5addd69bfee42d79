# Object libraries per instruction-set level, from the same sources.
#
# Each file of src/kernels/isa/ is compiled once per level that the target CPU family knows, with
#   -DTN_ISA=<level>            for pasting into names (generic, avx2, avx512, avx512_vnni, neon)
#   -DTN_ISA_LEVEL=TN_ISA_...   the enumerator of base/os.h
# and the level's instruction-set flags, which stand nowhere else. Every other file sees TN_HAVE_ISA_<LEVEL>=1 for the
# levels that were built.

string(TOLOWER "${CMAKE_SYSTEM_PROCESSOR}" tenon_cpu)
set(TENON_ISA_LEVELS generic)
if(tenon_cpu MATCHES "^(x86_64|amd64)$")
  list(APPEND TENON_ISA_LEVELS avx2 avx512 avx512_vnni)
elseif(tenon_cpu MATCHES "^(aarch64|arm64)$")
  list(APPEND TENON_ISA_LEVELS neon)
endif()

set(TENON_ISA_FLAGS_generic)
set(TENON_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c -mbmi -mbmi2)
set(TENON_ISA_FLAGS_avx512 ${TENON_ISA_FLAGS_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd
    -mprefer-vector-width=512)
set(TENON_ISA_FLAGS_avx512_vnni ${TENON_ISA_FLAGS_avx512} -mavx512vnni)
set(TENON_ISA_FLAGS_neon)

# Builds the levels; `out` gets their object files. `library` gets the TN_HAVE_ISA_ definitions.
function(tenon_isa_objects library out)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/kernels/isa/*.c)
  set(objects)
  # Threaded jumps split choices of two values into choices of many before loops become vectors; but without them the sums of a
  # register tile are spilled (src/kernels/isa/gemm.c runs at half its speed). Its loops of four rounds at most become straight code: the last
  # elements of each vector loop, unrolled, were a sixth of its size. Clang unrolls every loop: twice the code.
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/kernels/isa/strip.c PROPERTIES
                              COMPILE_OPTIONS
                              "$<$<C_COMPILER_ID:GNU>:-fno-thread-jumps;--param=max-completely-peel-times=4>;$<$<C_COMPILER_ID:Clang,AppleClang>:-fno-unroll-loops>")
  # Clang takes minutes over the unrolled tiles where each of their counters is checked; GCC checks them in seconds.
  if(TENON_SANITIZE MATCHES undefined AND CMAKE_C_COMPILER_ID MATCHES Clang)
    set_source_files_properties(${CMAKE_SOURCE_DIR}/src/kernels/isa/gemm.c PROPERTIES
                                COMPILE_OPTIONS -fno-sanitize=signed-integer-overflow)
  endif()
  if(sources)
    foreach(level IN LISTS TENON_ISA_LEVELS)
      string(TOUPPER ${level} upper)
      add_library(tenon_isa_${level} OBJECT ${sources})
      target_include_directories(tenon_isa_${level} PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
      target_compile_definitions(tenon_isa_${level} PRIVATE TN_ISA=${level} TN_ISA_LEVEL=TN_ISA_${upper})
      # Where there are others, the lowest level serves processors of before 2013: a third of its size is worth more than some of its speed.
      set(optimise -O3)
      if(level STREQUAL generic AND "avx2" IN_LIST TENON_ISA_LEVELS)
        set(optimise -O2)
      endif()
      target_compile_options(tenon_isa_${level} PRIVATE ${TENON_ISA_FLAGS_${level}} -Wconversion -Wmissing-prototypes
                             # Nobody reads floating-point exception flags; values are not touched.
                             -fno-trapping-math $<$<CONFIG:Release>:${optimise}>
                             # what is left of vectors is a loop, not a ladder: a quarter less code
                             "$<$<C_COMPILER_ID:GNU>:--param=max-completely-peel-times=8;--param=vect-epilogues-nomask=0>")
      target_link_libraries(tenon_isa_${level} PRIVATE tenon_flags)
      set_target_properties(tenon_isa_${level} PROPERTIES POSITION_INDEPENDENT_CODE ON)
      target_compile_definitions(${library} PRIVATE TN_HAVE_ISA_${upper}=1)
      list(APPEND objects $<TARGET_OBJECTS:tenon_isa_${level}>)
    endforeach()
  endif()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()
