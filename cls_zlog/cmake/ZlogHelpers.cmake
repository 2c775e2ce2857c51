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
endfunction()
