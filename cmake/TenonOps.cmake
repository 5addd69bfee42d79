# Builds with a part of the ONNX operators: -DTENON_OPS=FILE, a file that `tenon info MODEL --ops FILE` writes. A line is
# "domain;version;operator" or an operator's name alone; blank lines and lines that begin with # are skipped. Primitives are always there.
#
# Writes a header for src/onnx/table.c that says which families of operators are linked, which operators are listed, and
# the names of those that are left out (so that their message can say so). The linker leaves out what nothing refers to.
#
# As a script: cmake -DTENON_OPS=FILE -DTENON_OPS_HEADER=OUT -DTENON_SOURCE=REPOSITORY -P cmake/TenonOps.cmake
if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.25)
endif()

function(tenon_write_ops_header list root header)
  set(listed)
  set(names)
  # In a CMake list the file's semicolons would separate items: they are read as tabs.
  file(READ ${list} text)
  string(REPLACE ";" "\t" text "${text}")
  string(REGEX REPLACE "\r?\n" ";" lines "${text}")
  foreach(line IN LISTS lines)
    string(STRIP "${line}" line)
    if(line STREQUAL "" OR line MATCHES "^#")
      continue()
    endif()
    if(line MATCHES "^([^\t]*)\t[^\t]*\t([A-Za-z0-9_]+)$")
      set(domain "${CMAKE_MATCH_1}")
      set(name "${CMAKE_MATCH_2}")
    elseif(line MATCHES "^[A-Za-z0-9_]+$")
      set(domain "*")
      set(name "${line}")
    else()
      message(FATAL_ERROR "TENON_OPS: ${list}: '${line}' is neither 'domain;version;operator' nor an operator")
    endif()
    if(domain STREQUAL "ai.onnx")
      set(domain "")
    endif()
    list(APPEND listed "    {\"${domain}\", \"${name}\"},\n")
    list(APPEND names ${name})
  endforeach()
  if(NOT names)
    message(FATAL_ERROR "TENON_OPS: ${list} names no operator")
  endif()
  foreach(name Identity Squeeze) # what expansions leave where a type is not known before the run
    list(APPEND listed "    {\"\", \"${name}\"},\n")
    list(APPEND names ${name})
  endforeach()
  list(REMOVE_DUPLICATES names)
  list(REMOVE_DUPLICATES listed)

  # A family is linked when its file has the name of a listed operator in quotes.
  file(GLOB sources ${root}/src/onnx/*.c)
  set(families)
  set(found)
  set(left_out)
  foreach(source IN LISTS sources)
    file(READ ${source} text)
    string(REGEX MATCHALL "tn_onnx_family tn_onnx_family_[a-z0-9_]+ *=" definitions "${text}")
    if(NOT definitions)
      continue()
    endif()
    string(REGEX MATCHALL "\"[A-Z][A-Za-z0-9]*\"" quoted "${text}")
    list(TRANSFORM quoted REPLACE "\"" "")
    list(REMOVE_DUPLICATES quoted)
    set(needed FALSE)
    foreach(name IN LISTS quoted)
      if(name IN_LIST names)
        set(needed TRUE)
        list(APPEND found ${name})
      else()
        list(APPEND left_out ${name})
      endif()
    endforeach()
    if(needed)
      foreach(definition IN LISTS definitions)
        string(REGEX REPLACE "tn_onnx_family (tn_onnx_family_[a-z0-9_]+) *=" "    &\\1,\n" entry "${definition}")
        list(APPEND families "${entry}")
      endforeach()
    endif()
  endforeach()
  foreach(name IN LISTS names)
    if(NOT name IN_LIST found)
      message(STATUS "TENON_OPS: ${name} is no operator of this library: a primitive, a function, or a plugin's")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES left_out)
  list(TRANSFORM left_out REPLACE "(.+)" "    \"\\1\",\n")
  list(JOIN families "" families)
  list(JOIN listed "" listed)
  list(JOIN left_out "" left_out)
  file(CONFIGURE OUTPUT ${header} @ONLY CONTENT
"/* Made by cmake/TenonOps.cmake from ${list}. */
#define TN_OPS_PART 1
static const tn_onnx_family *const families[] = {
${families}    NULL,
};
static const tn_onnx_listed_op listed[] = { /* domain \"*\": any */
${listed}    {NULL, NULL},
};
static const char *const left_out[] = {
${left_out}    NULL,
};
")
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
  tenon_write_ops_header(${TENON_OPS} ${TENON_SOURCE} ${TENON_OPS_HEADER})
endif()
