#pragma once

#include <Python.h>

#include <exception>
#include <string>
#include <system_error>

namespace zlog::python {

// Raises the ZlogError for an errno (zlog/_base/refusals.py). `what` says which operation failed.
inline void raise_errno(int number, const std::string& what) {
  PyObject* module = PyImport_ImportModule("zlog._base.refusals");
  if (module == nullptr) return;
  PyObject* error = PyObject_CallMethod(module, "from_code", "is", -number, what.c_str());
  Py_DECREF(module);
  if (error == nullptr) return;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
  Py_DECREF(error);
}

// Raises the C++ exception that is being handled as a Python exception. Cython calls it for `except
// +raised`; otherwise it would raise a RuntimeError for a system error.
inline void raise_caught() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::system_error& error) {
    std::string what = error.what();  // ends with the code's message, which from_code adds
    const size_t end = what.rfind(": " + error.code().message());
    if (end != std::string::npos) what.resize(end);
    raise_errno(error.code().value(), what);
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

}  // namespace zlog::python
