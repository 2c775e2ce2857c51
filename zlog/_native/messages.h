#pragma once

#include <Python.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cls_zlog/describe/visitors.h"
#include "cls_zlog/method_table.h"

// Messages as Python's values: visitors that fill a request from a tuple, and make a named tuple of
// a reply. Text is str where a field says what text it has to be like, and bytes elsewhere. All of
// it needs the interpreter lock; a failure leaves Python's error behind.
namespace zlog::python {

// Owns a reference; empty after a failure.
class Ref {
 public:
  explicit Ref(PyObject* object) : object_(object) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&&) = delete;
  ~Ref() { Py_XDECREF(object_); }

  explicit operator bool() const { return object_ != nullptr; }
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }

 private:
  PyObject* object_;
};

// What a client encodes again. Further fields of a later version are the last value of it, as bytes:
// version, compat and the fields, or none.
template <typename T>
constexpr bool is_kept = std::is_same_v<T, View> || std::is_same_v<T, Stripe> ||
                         std::is_same_v<T, ExclusiveWriter> || std::is_same_v<T, EntryMac>;

// Visits what is a value of its own in Python.
template <typename T, typename V>
void each_value(T& message, V& visitor) {
  message.each(visitor);
  if constexpr (is_kept<T>) visitor("further", message.further);
}

inline bool is_text(const wire::Bounds& bounds) { return bounds.rule != wire::Rule::kAny; }

// Makes Runs of a packed spacing and positions. Not 0: it failed.
using TakeRuns = int (*)(uint32_t spacing, PyObject* positions, Runs* out);
inline TakeRuns take_runs = nullptr;

// Fills the fields of a message from a tuple, in which each has a value and Runs have two:
// spacing and positions. Fields of later versions may be left out. Strings refer to the tuple's.
class Filler {
 public:
  explicit Filler(PyObject* values) : values_(values), size_(PyTuple_GET_SIZE(values)) {}

  template <typename T>
  void operator()(const char* name, T& field, const wire::Bounds& bounds = wire::any()) {
    if (!ok_ || (bounds.version > 1 && at_ == size_)) return;
    ok_ = fill(name, field, bounds);
  }

  // Whether all went well, and no value is left.
  bool finish() {
    if (ok_ && at_ != size_) {
      PyErr_Format(PyExc_TypeError, "takes %zd values, not %zd", at_, size_);
      ok_ = false;
    }
    return ok_;
  }

 private:
  // The next value, a borrowed one.
  PyObject* next(const char* name) {
    if (at_ < size_) return PyTuple_GET_ITEM(values_, at_++);
    PyErr_Format(PyExc_TypeError, "no value for %s", name);
    return nullptr;
  }

  template <typename T>
  bool fill(const char* name, T& field, const wire::Bounds& bounds) {
    PyObject* const value = next(name);
    return value != nullptr && take(value, field, bounds);
  }
  bool fill(const char* name, Runs& runs, const wire::Bounds&) {
    PyObject* const spacing = next(name);
    PyObject* const positions = spacing == nullptr ? nullptr : next(name);
    uint32_t number = 0;
    return positions != nullptr && take(spacing, number, wire::any()) &&
           take_runs(number, positions, &runs) == 0;
  }

  template <typename T>
  std::enable_if_t<std::is_unsigned_v<T>, bool> take(PyObject* value, T& out, const wire::Bounds&) {
    const Ref number(PyNumber_Index(value));
    if (!number) return false;
    const unsigned long long found = PyLong_AsUnsignedLongLong(number.get());
    if (PyErr_Occurred()) return false;
    out = static_cast<T>(found);
    if (out == found) return true;
    PyErr_Format(PyExc_OverflowError, "%llu is more than %zu bytes hold", found, sizeof(T));
    return false;
  }
  bool take(PyObject* value, bool& out, const wire::Bounds&) {
    const int truth = PyObject_IsTrue(value);
    out = truth == 1;
    return truth >= 0;
  }
  template <typename T>
  std::enable_if_t<std::is_enum_v<T>, bool> take(PyObject* value, T& out, const wire::Bounds& b) {
    std::underlying_type_t<T> number = 0;
    const bool taken = take(value, number, b);
    out = static_cast<T>(number);
    return taken;
  }
  bool take(PyObject* value, std::optional<uint64_t>& out, const wire::Bounds& bounds) {
    return value == Py_None || take(value, out.emplace(), bounds);
  }
  bool take(PyObject* value, std::string_view& out, const wire::Bounds& bounds) {
    Py_ssize_t size = 0;
    if (is_text(bounds)) {
      const char* const text = PyUnicode_AsUTF8AndSize(value, &size);
      if (text != nullptr) out = {text, static_cast<size_t>(size)};
      return text != nullptr;
    }
    char* bytes = nullptr;
    if (PyBytes_AsStringAndSize(value, &bytes, &size) != 0) return false;
    out = {bytes, static_cast<size_t>(size)};
    return true;
  }
  bool take(PyObject* value, std::string& out, const wire::Bounds& bounds) {
    std::string_view view;
    if (!take(value, view, bounds)) return false;
    out = view;
    return true;
  }
  bool take(PyObject* value, wire::Further& out, const wire::Bounds& bounds) {
    std::string_view bytes;
    if (!take(value, bytes, bounds)) return false;
    if (bytes.size() < 2) return true;
    out = {wire::load<uint8_t>(bytes.data()), wire::load<uint8_t>(bytes.data() + 1),
           std::string(bytes.substr(2))};
    return true;
  }
  bool take(PyObject* value, std::map<std::string, std::string>& out, const wire::Bounds&) {
    const Ref items(PyMapping_Items(value));
    if (!items) return false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); i++) {
      PyObject* const item = PyList_GET_ITEM(items.get(), i);
      std::string key, text;
      if (!take(PyTuple_GET_ITEM(item, 0), key, wire::name())) return false;
      if (!take(PyTuple_GET_ITEM(item, 1), text, wire::name())) return false;
      out[key] = text;
    }
    return true;
  }
  bool take(PyObject* value, std::vector<std::string>& out, const wire::Bounds& bounds) {
    const Ref list(PySequence_Tuple(value));
    if (!list) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list.get()); i++) {
      if (!take(PyTuple_GET_ITEM(list.get(), i), out.emplace_back(), bounds)) return false;
    }
    return true;
  }
  template <typename T>
  bool take(PyObject* value, std::vector<T>& out, const wire::Bounds&) {
    const Ref list(PySequence_Tuple(value));
    if (!list) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list.get()); i++) {
      const Ref values(PySequence_Tuple(PyTuple_GET_ITEM(list.get(), i)));
      if (!values) return false;
      Filler filler(values.get());
      each_value(out.emplace_back(), filler);
      if (!filler.finish()) return false;
    }
    return true;
  }

  PyObject* const values_;
  const Py_ssize_t size_;
  Py_ssize_t at_ = 0;
  bool ok_ = true;
};

// The classes of the named tuples, by the names of the messages.
inline std::map<std::string, PyObject*> tuple_classes;

template <typename T>
PyObject* tuple_class();

// The names of a message's fields, as Python has them; and classes for the messages in them.
class Names {
 public:
  template <typename T>
  void operator()(const char* name, T& field, const wire::Bounds& bounds = wire::any()) {
    add(name, field);
    if (bounds.version == 1) required = found.size();
  }
  std::vector<std::string> found;
  size_t required = 0;  // the others are of later versions

 private:
  template <typename T>
  void add(const char* name, T&) {
    found.emplace_back(name);
  }
  void add(const char*, Runs&) { found.insert(found.end(), {"spacing", "positions"}); }
  template <typename T>
  void add(const char* name, std::vector<T>&) {
    found.emplace_back(name);
    if constexpr (!std::is_same_v<T, std::string>) tuple_class<T>();
  }
};

template <typename T>
Names names_of() {
  Names names;
  T message;
  each_value(message, names);
  return names;
}

inline PyObject* list_of(const std::vector<std::string>& texts) {
  Ref list(PyList_New(0));
  for (const std::string& each : texts) {
    const Ref text(PyUnicode_FromString(each.c_str()));
    if (!list || !text || PyList_Append(list.get(), text.get()) != 0) return nullptr;
  }
  return list.release();
}

// The class that replies of this type become; made once, and none where that failed.
template <typename T>
PyObject* tuple_class() {
  static PyObject* const made = [] {
    const Ref collections(PyImport_ImportModule("collections"));
    const Ref fields(list_of(names_of<T>().found));
    if (!collections || !fields) return static_cast<PyObject*>(nullptr);
    const std::string name = describe::name_of<T>();
    PyObject* const found =
        PyObject_CallMethod(collections.get(), "namedtuple", "sO", name.c_str(), fields.get());
    if (found != nullptr) tuple_classes[name] = found;
    return found;
  }();
  return made;
}

template <typename T>
PyObject* tuple_of(const T& message);

// Makes values of a message's fields, one after the other.
class Maker {
 public:
  template <typename T>
  void operator()(const char*, const T& field, const wire::Bounds& bounds = wire::any()) {
    if (ok_) ok_ = static_cast<bool>(values_.emplace_back(make(field, bounds)));
  }

  // A tuple of them, or none.
  PyObject* take() {
    if (!ok_) return nullptr;
    PyObject* const tuple = PyTuple_New(static_cast<Py_ssize_t>(values_.size()));
    if (tuple == nullptr) return nullptr;
    for (size_t i = 0; i < values_.size(); i++) {
      PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), values_[i].release());
    }
    return tuple;
  }

 private:
  template <typename T>
  static std::enable_if_t<std::is_unsigned_v<T>, PyObject*> make(T number, const wire::Bounds&) {
    return PyLong_FromUnsignedLongLong(number);
  }
  static PyObject* make(bool value, const wire::Bounds&) { return PyBool_FromLong(value ? 1 : 0); }
  template <typename T>
  static std::enable_if_t<std::is_enum_v<T>, PyObject*> make(T value, const wire::Bounds& bounds) {
    return make(static_cast<std::underlying_type_t<T>>(value), bounds);
  }
  static PyObject* make(const std::optional<uint64_t>& number, const wire::Bounds& bounds) {
    if (number) return make(*number, bounds);
    Py_RETURN_NONE;
  }
  static PyObject* make(std::string_view text, const wire::Bounds& bounds) {
    const auto size = static_cast<Py_ssize_t>(text.size());
    if (is_text(bounds)) return PyUnicode_DecodeUTF8(text.data(), size, nullptr);
    return PyBytes_FromStringAndSize(text.data(), size);
  }
  static PyObject* make(const std::string& text, const wire::Bounds& bounds) {
    return make(std::string_view(text), bounds);
  }
  static PyObject* make(const wire::Further& further, const wire::Bounds& bounds) {
    std::string bytes;
    if (!further.fields.empty()) {
      wire::Writer(&bytes).u8(further.version).u8(further.compat).bytes(further.fields);
    }
    return make(bytes, bounds);
  }
  static PyObject* make(const std::map<std::string, std::string>& map, const wire::Bounds&) {
    Ref made(PyDict_New());
    for (const auto& [key, text] : map) {
      const Ref name(make(key, wire::name())), value(make(text, wire::name()));
      if (!made || !name || !value) return nullptr;
      if (PyDict_SetItem(made.get(), name.get(), value.get()) != 0) return nullptr;
    }
    return made.release();
  }
  template <typename T>
  static PyObject* make(const std::vector<T>& list, const wire::Bounds& bounds) {
    Ref made(PyList_New(0));
    for (const T& each : list) {
      const Ref value(element(each, bounds));
      if (!made || !value || PyList_Append(made.get(), value.get()) != 0) return nullptr;
    }
    return made.release();
  }
  static PyObject* element(const std::string& text, const wire::Bounds& bounds) {
    return make(text, bounds);
  }
  template <typename T>
  static PyObject* element(const T& message, const wire::Bounds&) {
    return tuple_of(message);
  }

  std::vector<Ref> values_;
  bool ok_ = true;
};

template <typename T>
PyObject* tuple_of(const T& message) {
  Maker maker;
  each_value(const_cast<T&>(message), maker);
  const Ref values(maker.take());
  return values ? PyObject_CallObject(tuple_class<T>(), values.get()) : nullptr;
}

// A request of these values, as bytes.
template <typename Request>
PyObject* encode(const char* what, PyObject* values) {
  Request request;
  Filler filler(values);
  each_value(request, filler);
  if (!filler.finish()) return nullptr;
  std::string bytes;
  if (wire::encode(request, &bytes)) {
    return PyBytes_FromStringAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size()));
  }
  PyErr_Format(PyExc_ValueError, "not a valid %s request: a value is out of its bounds", what);
  return nullptr;
}

// The reply that these bytes are; None where they are not one, as `how` says.
template <typename Reply>
PyObject* decode(std::string_view bytes, int* how) {
  Reply reply;
  const wire::Decoded decoded = wire::decode(bytes, &reply);
  *how = static_cast<int>(decoded);
  if (decoded == wire::Decoded::kOk) return tuple_of(reply);
  Py_RETURN_NONE;
}

using Encode = PyObject* (*)(const char* what, PyObject* values);
using Decode = PyObject* (*)(std::string_view bytes, int* how);

struct Encoder {
  std::string name;
  Names parameters;
  Encode call;
};

struct Decoder {
  std::string name, what;
  Decode call;
};

// Encoded and decoded in `core`, by the batch.
template <typename T>
constexpr bool in_core =
    std::is_same_v<T, WriteRequest> || std::is_same_v<T, Fullness> ||
    std::is_same_v<T, ReadReplyBuilder> || std::is_same_v<T, SelectReplyBuilder> ||
    std::is_same_v<T, TagsListReplyBuilder> || std::is_same_v<T, VerifyReply>;

// What Python calls: a function for each request, and one for each reply that has fields.
class Functions {
 public:
  explicit Functions(TakeRuns runs) {
    take_runs = runs;
    each_method(*this);
    add_decoder<RefusalReply>("refusal", "refusal");
    add_encoder<View>("encode_view");
    add_decoder<View>("decode_view", "view");
  }

  template <auto handler>
  void operator()(Handler<handler>, const char* name, int) {
    add(static_cast<decltype(handler)>(nullptr), name);
  }

  std::vector<Encoder> encoders;
  std::vector<Decoder> decoders;

 private:
  template <typename Reply, typename Request>
  void add(Result<Reply> (*)(Object&, const Request&), const std::string& name) {
    if constexpr (!in_core<Request>) add_encoder<Request>(name);
    if constexpr (!in_core<Reply>) {
      if (!names_of<Reply>().found.empty()) add_decoder<Reply>(name + "_reply", name + " reply");
    }
  }
  template <typename Request>
  void add_encoder(const std::string& name) {
    encoders.push_back({name, names_of<Request>(), &encode<Request>});
  }
  template <typename Reply>
  void add_decoder(const std::string& name, const std::string& what) {
    tuple_class<Reply>();
    decoders.push_back({name, what, &decode<Reply>});
  }
};

}  // namespace zlog::python
