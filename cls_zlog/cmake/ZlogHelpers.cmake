# Decides about an optional part that needs a header: sets ${option}_FOUND, ${option}_INCLUDE_DIR.
# `option` is AUTO (take it where it is), ON (fail without it) or OFF.
function(zlog_find_header option header packages)
  set(${option}_FOUND FALSE PARENT_SCOPE)
  if(${option} STREQUAL "OFF")
    return()
  endif()
  if(NOT ${option} MATCHES "^(ON|AUTO)$")
    message(FATAL_ERROR "${option} is '${${option}}'; it must be AUTO, ON or OFF.")
  endif()
  find_path(${option}_INCLUDE_DIR ${header})
  if(${option}_INCLUDE_DIR)
    set(${option}_FOUND TRUE PARENT_SCOPE)
  elseif(${option} STREQUAL "ON")
    message(FATAL_ERROR "${option}=ON, but ${header} was not found. Install ${packages}.")
  else()
    message(STATUS "zlog: without the part ${option}, since ${header} was not found")
  endif()
endfunction()

# Finds a library that the package can't be built without: sets ${name}_INCLUDE_DIR, ${name}_LIBRARY.
function(zlog_find_library name header library packages)
  find_path(${name}_INCLUDE_DIR ${header})
  find_library(${name}_LIBRARY ${library})
  if(NOT ${name}_INCLUDE_DIR OR NOT ${name}_LIBRARY)
    message(FATAL_ERROR
      "zlog needs ${header} and lib${library} to be built, and did not find them.\n"
      "Install ${packages}, or point CMAKE_PREFIX_PATH to them.")
  endif()
endfunction()

# Adds the Python extension ${package}.${name}, made from ${name}.pyx in this folder. Further arguments
# are files that the build writes and that it includes. Annotations are for stubs, and check nothing.
# The stub of the extension follows from its code (tools/stubs.py).
function(zlog_add_extension package name)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${name}.pyx)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  add_custom_command(
    OUTPUT ${generated}
    COMMAND ${Python_EXECUTABLE} -m cython -3 --cplus --depfile -X annotation_typing=False
            --module-name ${package}.${name} -I ${CMAKE_SOURCE_DIR} -I ${CMAKE_CURRENT_BINARY_DIR} -o ${generated} ${source}
    DEPENDS ${source} ${ARGN}
    DEPFILE ${generated}.dep
    COMMENT "Cython: ${name}"
    VERBATIM)
  python_add_library(${name} MODULE WITH_SOABI ${generated})
  # Cython's own output is not ours to warn about.
  target_compile_options(${name} PRIVATE -w)
  # Load only the libraries that it uses.
  target_link_options(${name} PRIVATE LINKER:--as-needed)
  string(REPLACE . / folder ${package})
  install(TARGETS ${name} DESTINATION ${folder} COMPONENT python)
  file(GLOB declared CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}.pxd)
  zlog_add_generated(${folder} ${name}.pyi stubs.py ${source} DEPENDS ${declared} ARGUMENTS ${ARGN})
endfunction()

# Has a script in tools/ write a file of the package: SCRIPT SOURCE FILE [ARGUMENTS...]. In an editable
# install it is copied to the sources, where type checkers and editors look for it.
function(zlog_add_generated folder name script source)
  cmake_parse_arguments(PARSE_ARGV 4 arg "" "TO" "DEPENDS;ARGUMENTS")
  set(file ${CMAKE_CURRENT_BINARY_DIR}/${name})
  set(tool ${CMAKE_SOURCE_DIR}/tools/${script})
  if(NOT arg_TO)
    set(arg_TO ${CMAKE_CURRENT_SOURCE_DIR})
  endif()
  if(SKBUILD_STATE STREQUAL "editable")
    set(copy COMMAND ${CMAKE_COMMAND} -E copy ${file} ${arg_TO})
  endif()
  add_custom_command(
    OUTPUT ${file}
    COMMAND ${Python_EXECUTABLE} ${tool} ${source} ${file} ${arg_ARGUMENTS}
    ${copy}
    DEPENDS ${source} ${arg_DEPENDS} ${arg_ARGUMENTS} ${tool}
    VERBATIM)
  string(MAKE_C_IDENTIFIER ${folder}_${name} target)
  add_custom_target(${target} ALL DEPENDS ${file})
  install(FILES ${file} DESTINATION ${folder} COMPONENT python)
endfunction()
