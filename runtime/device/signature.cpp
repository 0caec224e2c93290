#include "runtime/device/signature.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>

namespace pascaline {
namespace {

constexpr const char* kFile = "pascaline_signature";

// Kinds of types: i and u integers, f floating-point numbers, h and b those of 16 bits, v void, c classes, o others; as
// an argument's kind, a is a buffer of anything. A mismatch asks an empty class for a member that it lacks, since all
// compilers then print the class with its arguments. No name here can be a macro of a kernel but `x`.
constexpr const char* kCheck = R"code(
#undef x
#ifdef __CUDACC_RTC__
#define pascaline_offset(pascaline_t, ...) __INTADDR__(&static_cast<pascaline_t*>(0)->__VA_ARGS__)
#else
#define pascaline_offset __builtin_offsetof
#endif
struct __half;
struct __nv_bfloat16;
template <int, typename> struct pascaline_refused {};
template <int> struct pascaline_refused_count {};
template <typename...> struct pascaline_list {};
template <bool, int, typename> struct pascaline_argument {};
template <int pascaline_n, typename pascaline_t> struct pascaline_argument<false, pascaline_n, pascaline_t> {
  using pascaline_type = typename pascaline_refused<pascaline_n, pascaline_t>::pascaline_none;
};
template <typename pascaline_t> struct pascaline_bare { using pascaline_type = pascaline_t; };
template <typename pascaline_t> struct pascaline_bare<const pascaline_t> : pascaline_bare<pascaline_t> {};
template <typename pascaline_t> struct pascaline_bare<volatile pascaline_t> : pascaline_bare<pascaline_t> {};
template <typename pascaline_t> struct pascaline_bare<const volatile pascaline_t> : pascaline_bare<pascaline_t> {};
template <typename pascaline_t, int pascaline_n> struct pascaline_bare<pascaline_t[pascaline_n]>
    : pascaline_bare<pascaline_t> {};
template <char pascaline_k, int pascaline_b> struct pascaline_is {
  enum : char { pascaline_kind = pascaline_k };
  enum : int { pascaline_bytes = pascaline_b };
};
template <typename pascaline_t, bool = __is_enum(pascaline_t)> struct pascaline_of
    : pascaline_is<__is_class(pascaline_t) || __is_union(pascaline_t) ? 'c' : 'o', 0> {};
template <typename pascaline_t> struct pascaline_of<pascaline_t, true> : pascaline_is<'i', sizeof(pascaline_t)> {};
template <> struct pascaline_of<void, false> : pascaline_is<'v', 0> {};
template <> struct pascaline_of<bool, false> : pascaline_is<'u', 1> {};
template <> struct pascaline_of<char, false> : pascaline_is<'u', 1> {};
template <> struct pascaline_of<signed char, false> : pascaline_is<'i', 1> {};
template <> struct pascaline_of<unsigned char, false> : pascaline_is<'u', 1> {};
template <> struct pascaline_of<short, false> : pascaline_is<'i', sizeof(short)> {};
template <> struct pascaline_of<unsigned short, false> : pascaline_is<'u', sizeof(short)> {};
template <> struct pascaline_of<int, false> : pascaline_is<'i', sizeof(int)> {};
template <> struct pascaline_of<unsigned, false> : pascaline_is<'u', sizeof(int)> {};
template <> struct pascaline_of<long, false> : pascaline_is<'i', sizeof(long)> {};
template <> struct pascaline_of<unsigned long, false> : pascaline_is<'u', sizeof(long)> {};
template <> struct pascaline_of<long long, false> : pascaline_is<'i', sizeof(long long)> {};
template <> struct pascaline_of<unsigned long long, false> : pascaline_is<'u', sizeof(long long)> {};
template <> struct pascaline_of<float, false> : pascaline_is<'f', sizeof(float)> {};
template <> struct pascaline_of<double, false> : pascaline_is<'f', sizeof(double)> {};
template <> struct pascaline_of<__half, false> : pascaline_is<'h', 2> {};
template <> struct pascaline_of<__nv_bfloat16, false> : pascaline_is<'b', 2> {};
template <char pascaline_k> struct pascaline_whole {
  enum : bool { pascaline_value = pascaline_k == 'i' || pascaline_k == 'u' };
};
template <char pascaline_k, int pascaline_b, char pascaline_l, int pascaline_c> struct pascaline_same {
  enum : bool {
    pascaline_value = pascaline_b == pascaline_c &&
                      (pascaline_k == pascaline_l ||
                       (pascaline_whole<pascaline_k>::pascaline_value && pascaline_whole<pascaline_l>::pascaline_value))
  };
};
template <typename> using pascaline_void = void;
template <typename pascaline_t, typename = void> struct pascaline_part { using pascaline_type = void; };
template <typename pascaline_t> struct pascaline_part<pascaline_t, pascaline_void<decltype(pascaline_t::x)>> {
  using pascaline_type = decltype(pascaline_t::x);
};
template <char pascaline_k, int pascaline_b, typename pascaline_t, char = pascaline_of<pascaline_t>::pascaline_kind>
struct pascaline_holds {
  using pascaline_own = pascaline_of<pascaline_t>;
  enum : char { pascaline_l = pascaline_own::pascaline_kind };
  enum : int { pascaline_c = pascaline_own::pascaline_bytes };
  enum : bool { pascaline_own_whole = pascaline_whole<pascaline_l>::pascaline_value };
  enum : bool {
    pascaline_value =
        pascaline_l == 'v' || (pascaline_own_whole && pascaline_c == 1) ||
        pascaline_same<pascaline_k, pascaline_b, pascaline_l, pascaline_c>::pascaline_value ||
        (pascaline_own_whole && pascaline_b == 1) ||
        ((pascaline_k == 'h' || pascaline_k == 'b') && (pascaline_l == 'u' || (pascaline_l == 'i' && pascaline_c == 2)))
  };
};
template <char pascaline_k, int pascaline_b, typename pascaline_t>
struct pascaline_holds<pascaline_k, pascaline_b, pascaline_t, 'c'>
    : pascaline_holds<pascaline_k, pascaline_b,
                      typename pascaline_bare<typename pascaline_part<pascaline_t>::pascaline_type>::pascaline_type> {};
template <char pascaline_k, int pascaline_b> struct pascaline_scalar {
  template <typename pascaline_t> struct pascaline_takes {
    using pascaline_own = pascaline_of<typename pascaline_bare<pascaline_t>::pascaline_type>;
    enum : bool {
      pascaline_value = pascaline_same<pascaline_k, pascaline_b, pascaline_own::pascaline_kind,
                                       pascaline_own::pascaline_bytes>::pascaline_value
    };
  };
};
template <char pascaline_k, int pascaline_b, typename pascaline_t,
          char = pascaline_of<typename pascaline_bare<pascaline_t>::pascaline_type>::pascaline_kind>
struct pascaline_points : pascaline_holds<pascaline_k, pascaline_b, typename pascaline_bare<pascaline_t>::pascaline_type> {};
template <int pascaline_b, typename pascaline_t, char pascaline_l> struct pascaline_points<'a', pascaline_b, pascaline_t, pascaline_l> {
  enum : bool { pascaline_value = pascaline_l != 'o' };
};
template <typename> struct pascaline_constant { enum : bool { pascaline_value = false }; };
template <typename pascaline_t> struct pascaline_constant<const pascaline_t> { enum : bool { pascaline_value = true }; };
template <char pascaline_k, int pascaline_b, bool pascaline_w> struct pascaline_buffer {
  template <typename> struct pascaline_takes { enum : bool { pascaline_value = false }; };
  template <typename pascaline_t> struct pascaline_takes<pascaline_t*> {
    enum : bool { pascaline_value = pascaline_points<pascaline_k, pascaline_b, pascaline_t>::pascaline_value &&
                                            !(pascaline_w && pascaline_constant<pascaline_t>::pascaline_value) };
  };
};
template <char pascaline_k, int pascaline_b, typename pascaline_t> struct pascaline_member {
  using pascaline_own = pascaline_of<typename pascaline_bare<pascaline_t>::pascaline_type>;
  enum : bool {
    pascaline_value = sizeof(pascaline_t) == pascaline_b &&
                      (pascaline_own::pascaline_kind == 'c' ||
                       pascaline_same<pascaline_k, pascaline_b, pascaline_own::pascaline_kind,
                                      pascaline_own::pascaline_bytes>::pascaline_value)
  };
};
template <typename pascaline_t> struct pascaline_member_type { using pascaline_type = pascaline_t; };
template <typename pascaline_t> struct pascaline_member_type<pascaline_t&> { using pascaline_type = pascaline_t; };
template <typename pascaline_t, int pascaline_b, bool pascaline_a, typename = void> struct pascaline_other_class {
  enum : bool { pascaline_value = false };
};
template <typename pascaline_t, int pascaline_b>
struct pascaline_other_class<pascaline_t, pascaline_b, true, pascaline_void<int[sizeof(pascaline_t) == pascaline_b ? 1 : -1]>> {
  enum : bool { pascaline_value = pascaline_of<pascaline_t>::pascaline_kind == 'c' };
};
template <typename pascaline_g> struct pascaline_composite_scalar {
  template <typename pascaline_t> struct pascaline_takes
      : pascaline_g::template pascaline_holds_it<typename pascaline_bare<pascaline_t>::pascaline_type> {};
};
template <typename pascaline_g, bool pascaline_w> struct pascaline_composite_buffer {
  template <typename> struct pascaline_takes { enum : bool { pascaline_value = false }; };
  template <typename pascaline_t> struct pascaline_takes<pascaline_t*> {
    using pascaline_to = typename pascaline_bare<pascaline_t>::pascaline_type;
    enum : bool {
      pascaline_value = (pascaline_of<pascaline_to>::pascaline_kind == 'v' ||
                         pascaline_g::template pascaline_holds_it<pascaline_to>::pascaline_value) &&
                        !(pascaline_w && pascaline_constant<pascaline_t>::pascaline_value)
    };
  };
};
template <int, typename, typename> struct pascaline_each {};
template <int pascaline_n, typename pascaline_p, typename... pascaline_q, typename pascaline_g, typename... pascaline_h>
struct pascaline_each<pascaline_n, pascaline_list<pascaline_p, pascaline_q...>, pascaline_list<pascaline_g, pascaline_h...>>
    : pascaline_argument<pascaline_g::template pascaline_takes<pascaline_p>::pascaline_value, pascaline_n, pascaline_p>,
      pascaline_each<pascaline_n + 1, pascaline_list<pascaline_q...>, pascaline_list<pascaline_h...>> {};
template <bool, int pascaline_n, typename, typename> struct pascaline_all {
  using pascaline_type = typename pascaline_refused_count<pascaline_n>::pascaline_none;
};
template <int pascaline_n, typename pascaline_p, typename pascaline_g> struct pascaline_all<true, pascaline_n, pascaline_p, pascaline_g>
    : pascaline_each<1, pascaline_p, pascaline_g> {};
template <typename, typename> struct pascaline_check;
template <typename... pascaline_p, typename... pascaline_g>
struct pascaline_check<void (*)(pascaline_p...), pascaline_list<pascaline_g...>>
    : pascaline_all<sizeof...(pascaline_p) == sizeof...(pascaline_g), sizeof...(pascaline_p), pascaline_list<pascaline_p...>,
                    pascaline_list<pascaline_g...>> {};
)code";

struct CodeOfType {
  char kind;
  std::size_t bytes;
};

CodeOfType code_of(ElementType type) {
  const std::size_t bytes = size_of(type);
  switch (type) {
    case ElementType::float32:
    case ElementType::float64:
      return {'f', bytes};
    case ElementType::float16:
      return {'h', bytes};
    case ElementType::bfloat16:
      return {'b', bytes};
    default:
      return {'i', bytes};
  }
}

bool is_composite(const LaunchedArgument& argument) {
  return argument.composite && argument.role != LaunchedArgument::Role::scratch;
}

// A class template whose instance says if a type of the kernel is this one. Its first form is of types that lack one of
// the members, or have a member that hides one.
std::string composite_code(const CompositeType& type, std::size_t place) {
  std::string names;
  std::string undefined;
  std::string checks = fmt::format("sizeof(pascaline_t) == {}", type.bytes());
  for (const CompositeType::Member& member : type.members) {
    const auto [kind, bytes] = code_of(member.type);
    const std::string access = fmt::format("static_cast<pascaline_t*>(nullptr)->{}", member.name);
    names += fmt::format("{}({})", names.empty() ? "" : ", ", access);
    checks += fmt::format(
        " && pascaline_member<'{}', {}, typename "
        "pascaline_member_type<decltype(({}))>::pascaline_type>::pascaline_value "
        "&& pascaline_offset(pascaline_t, {}) == {}",
        kind, bytes, access, member.name, member.offset);
    undefined += fmt::format("#undef {}\n", member.name.substr(0, member.name.find_first_of(".[")));
  }
  return fmt::format(R"code({}struct pascaline_composite_{} {{
  template <typename pascaline_t, typename = void> struct pascaline_holds_it
      : pascaline_other_class<pascaline_t, {}, {}> {{}};
  template <typename pascaline_t> struct pascaline_holds_it<pascaline_t, pascaline_void<decltype({})>> {{
    enum : bool {{ pascaline_value = {} }};
  }};
}};
)code",
                     undefined, place, type.bytes(), type.is_vector, names, checks);
}

// The class template of the check that takes the parameter.
std::string given_code(const LaunchedArgument& argument, std::size_t place) {
  const bool is_scalar = argument.role == LaunchedArgument::Role::scalar;
  const bool is_output = argument.role == LaunchedArgument::Role::output;
  if (is_composite(argument)) {
    return is_scalar ? fmt::format("pascaline_composite_scalar<pascaline_composite_{}>", place)
                     : fmt::format("pascaline_composite_buffer<pascaline_composite_{}, {}>", place, is_output);
  }
  const bool is_any = argument.role == LaunchedArgument::Role::scratch || is_matrix_format(argument.type);
  const auto [kind, bytes] = is_any ? CodeOfType{'a', 0} : code_of(argument.type);
  return is_scalar ? fmt::format("pascaline_scalar<'{}', {}>", kind, bytes)
                   : fmt::format("pascaline_buffer<'{}', {}, {}>", kind, bytes, is_output);
}

std::string given_text(const LaunchedArgument& argument) {
  const std::string type = argument.composite ? argument.composite->text() : std::string(name_of(argument.type));
  switch (argument.role) {
    case LaunchedArgument::Role::scalar:
      return fmt::format("a scalar of {}", type);
    case LaunchedArgument::Role::output:
      return fmt::format("a buffer of {} to write to", type);
    default:
      return fmt::format("a buffer of {}", type);
  }
}

// GCC writes some types at greater length than the other compilers.
std::string usual_spelling(std::string type) {
  constexpr std::array<std::pair<const char*, const char*>, 9> kSpellings{
      {{"__nv_bool", "bool"},
       {"long long unsigned int", "unsigned long long"},
       {"long unsigned int", "unsigned long"},
       {"short unsigned int", "unsigned short"},
       {"long long int", "long long"},
       {"long int", "long"},
       {"short int", "short"},
       {" *", "*"},
       {" &", "&"}}};
  for (const auto& [from, to] : kSpellings) {
    const std::string_view longer = from;
    for (std::size_t at = type.find(longer); at != std::string::npos; at = type.find(longer, at)) {
      type.replace(at, longer.size(), to);
    }
  }
  return type;
}

// The template arguments that follow `name` in a message.
std::optional<std::string> arguments_of(const std::string& message, std::string_view name) {
  const std::size_t found = message.find(name);
  if (found == std::string::npos) {
    return std::nullopt;
  }
  const std::size_t begin = found + name.size();
  int depth = 1;
  for (std::size_t i = begin; i < message.size(); ++i) {
    depth += message[i] == '<' ? 1 : message[i] == '>' ? -1 : 0;
    if (depth == 0) {
      return message.substr(begin, i - begin);
    }
  }
  return std::nullopt;
}

}  // namespace

std::string signature_check(const std::string& function, const std::vector<LaunchedArgument>& arguments) {
  std::string composites;
  std::string given;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    composites += is_composite(arguments[i]) ? composite_code(*arguments[i].composite, i) : "";
    given += (given.empty() ? "" : ", ") + given_code(arguments[i], i);
  }
  return fmt::format(
      "\n#line 1 \"{}\"{}{}static_assert(sizeof(pascaline_check<decltype(&{}), pascaline_list<{}>>) > 0, \"\");\n",
      kFile, kCheck, composites, function, given);
}

bool is_of_signature_check(const std::string& message) { return message.find(kFile) != std::string::npos; }

std::optional<std::string> signature_fault(const std::string& message, const std::string& function,
                                           const std::vector<LaunchedArgument>& arguments) {
  if (const auto count = arguments_of(message, "pascaline_refused_count<")) {
    return fmt::format("{} takes {} arguments, the search space gives {}", function, *count, arguments.size());
  }
  const auto refused = arguments_of(message, "pascaline_refused<");
  std::size_t place = 0;
  if (!refused || std::from_chars(refused->data(), refused->data() + refused->size(), place).ec != std::errc() ||
      place == 0 || place > arguments.size()) {
    return std::nullopt;
  }
  const std::size_t comma = refused->find(", ");
  const LaunchedArgument& argument = arguments[place - 1];
  return fmt::format("{} takes {} as its argument {}, the search space gives '{}', {}", function,
                     comma == std::string::npos ? "another type" : usual_spelling(refused->substr(comma + 2)), place,
                     argument.name, given_text(argument));
}

}  // namespace pascaline
