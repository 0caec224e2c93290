#include <gtest/gtest.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <functional>
#include <string>

#include "core/error.hpp"
#include "core/space/space.hpp"
#include "core/util/paths.hpp"
#include "tests/core/space/small_space.hpp"

namespace pascaline {
namespace {

using nlohmann::json;
using testing::small_space;

struct BadSpace {
  const char* name;
  std::function<void(json&)> change;
  const char* pointer;
  const char* message;  // part of it
};

json& at(json& space, const char* pointer) { return space[json::json_pointer(pointer)]; }

// One change each that makes the space wrong.
const BadSpace kBadSpaces[] = {
    {"unknown key", [](json& s) { s["block_size"] = 1; }, "", "unknown key 'block_size'"},
    {"unknown key below", [](json& s) { at(s, "/parameters/1/vals") = 1; }, "/parameters/1", "unknown key 'vals'"},
    {"missing key", [](json& s) { s.erase("work"); }, "", "'work' is missing"},
    {"missing key below", [](json& s) { at(s, "/parameters/0").erase("default"); }, "/parameters/0", "'default'"},
    {"defaults as a list", [](json& s) { s["defaults"] = json::array(); }, "/defaults", "expected an object"},
    {"defaults of no architecture", [](json& s) { s["defaults"]["pascal"] = json::object(); }, "/defaults/pascal",
     "not an architecture"},
    {"defaults of some problems of which one is always meant",
     [](json& s) {
       s["defaults"]["sm_61"] = {{{"set", {{"BLOCK", 128}}}}, {{"if", "N > 4"}, {"set", {{"BLOCK", 32}}}}};
     },
     "/defaults/sm_61/0", "has no 'if', so that what follows is never the default"},
    {"defaults of any device for all problems",
     [](json& s) {
       s["defaults"]["any"] = {{{"set", {{"BLOCK", 128}}}}};
     },
     "/defaults/any/0", "has no 'if'"},
    {"meaning by what there is not", [](json& s) { at(s, "/parameters/0/when") = "SMALL"; }, "/parameters/0/when",
     "SMALL"},
    {"arithmetic of no type", [](json& s) { at(s, "/work/arithmetic") = "WEIGHTS"; }, "/work/arithmetic",
     "is float32, int8 or a type variable"},
    {"defaults by a parameter",
     [](json& s) {
       s["defaults"]["sm_61"] = {{{"if", "BLOCK > 4"}, {"set", {{"BLOCK", 32}}}}};
     },
     "/defaults/sm_61/0/if", "names a parameter"},
    {"defaults by what there is not",
     [](json& s) {
       s["defaults"]["sm_61"] = {{{"if", "ROWS > 4"}, {"set", {{"BLOCK", 32}}}}};
     },
     "/defaults/sm_61/0/if", "ROWS"},
    {"defaults of some problems without settings",
     [](json& s) {
       s["defaults"]["sm_61"] = {{{"if", "N > 4"}}};
     },
     "/defaults/sm_61/0", "the key 'set' is missing"},
    {"default of no parameter", [](json& s) { s["defaults"]["sm_61"]["BLOK"] = 1; }, "/defaults/sm_61/BLOK",
     "not a parameter"},
    {"default of an architecture that is no value", [](json& s) { s["defaults"]["sm_61"]["BLOCK"] = 48; },
     "/defaults/sm_61/BLOCK", "48 is not among the values of 'BLOCK'"},
    {"default of an architecture that is not valid",
     [](json& s) {
       s["defaults"]["sm_70"] = {{"BLOCK", 256}, {"ITEMS", 4}};
     },
     "/constraints/0", "the default for sm_70 breaks this constraint"},
    {"portfolio as an object", [](json& s) { s["portfolio"] = json::object(); }, "/portfolio", "expected an array"},
    {"portfolio of no parameter",
     [](json& s) {
       s["portfolio"] = {{{"BLOK", 1}}};
     },
     "/portfolio/0/BLOK", "not a parameter"},
    {"portfolio with no value",
     [](json& s) {
       s["portfolio"] = {{{"BLOCK", 48}}};
     },
     "/portfolio/0/BLOCK", "48 is not among the values of 'BLOCK'"},
    {"portfolio with the default",
     [](json& s) {
       s["portfolio"] = {{{"ITEMS", 1}}, {{"BLOCK", 64}}};
     },
     "/portfolio/1", "is the default configuration"},
    {"portfolio with a duplicate",
     [](json& s) {
       s["portfolio"] = {{{"ITEMS", 1}}, {{"BLOCK", 32}}, {{"BLOCK", 64}, {"ITEMS", 1}}};
     },
     "/portfolio/2", "the same configuration as entry 0"},
    {"portfolio that no problem can take",
     [](json& s) {
       s["portfolio"] = {{{"BLOCK", 256}, {"ITEMS", 4}}};
     },
     "/portfolio/0", "is valid for no problem ('BLOCK * ITEMS <= 256': the tile is small)"},
    {"portfolio that is too long",
     [](json& s) {
       s["portfolio"] = json(17, {{"BLOCK", 32}});
     },
     "/portfolio", "has 17 configurations; at most 16"},
    {"portfolio of no architecture", [](json& s) { s["portfolios"]["pascal"] = json::array(); }, "/portfolios/pascal",
     "not an architecture"},
    {"portfolio with the architecture's default",
     [](json& s) {
       s["defaults"]["sm_61"] = {{"BLOCK", 128}};
       s["portfolios"]["sm_61"] = {{{"BLOCK", 128}}};
     },
     "/portfolios/sm_61/0", "is the default configuration"},
    {"wrong schema", [](json& s) { s["schema"] = 2; }, "/schema", "schema 1"},
    {"schema as text", [](json& s) { s["schema"] = "1"; }, "/schema", "expected an integer"},
    {"empty kernel", [](json& s) { s["kernel"] = ""; }, "/kernel", "must not be empty"},
    {"unknown name", [](json& s) { at(s, "/constraints/0/require") = "BLOK <= 1"; }, "/constraints/0/require",
     "unknown name 'BLOK'"},
    {"unknown name in a launch", [](json& s) { at(s, "/launch/grid/1") = "M"; }, "/launch/grid/1", "unknown name 'M'"},
    {"type in an expression", [](json& s) { at(s, "/work/bytes") = "STORAGE * N"; }, "/work/bytes", "sizeof(STORAGE)"},
    {"text parameter in an expression", [](json& s) { at(s, "/work/flops") = "MODE"; }, "/work/flops", "not integers"},
    {"size of a text parameter", [](json& s) { at(s, "/work/flops") = "sizeof(MODE)"; }, "/work/flops", "unknown name"},
    {"macro that uses itself", [](json& s) { at(s, "/macros/0/value") = "ALIGNED + 1"; }, "/macros/0/value",
     "unknown name 'ALIGNED'"},
    {"constraint that does not parse", [](json& s) { at(s, "/constraints/1/require") = "N % % 2"; },
     "/constraints/1/require", "column 5"},
    {"constraint without reason", [](json& s) { at(s, "/constraints/1").erase("because"); }, "/constraints/1",
     "'because'"},
    {"text for an array", [](json& s) { at(s, "/parameters/0/values") = "32"; }, "/parameters/0/values",
     "expected an array"},
    {"object for an array", [](json& s) { s["parameters"] = json::object(); }, "/parameters", "expected an array"},
    {"array for an object", [](json& s) { s["reference"] = json::array(); }, "/reference", "expected an object"},
    {"pipeline without a launch", [](json& s) { s["launch"] = json::array(); }, "/launch", "1 to 16 launches"},
    {"launch of an unknown argument", [](json& s) { at(s, "/launch/arguments") = {"nothing"}; }, "/launch/arguments/0",
     "no argument is called 'nothing'"},
    {"argument that no launch takes", [](json& s) { at(s, "/launch/arguments") = json::array(); }, "/launch",
     "no launch takes the argument '"},
    {"second launch with an unknown name",
     [](json& s) {
       json second = s["launch"];
       second["grid"] = {"M"};
       s["launch"] = json::array({s["launch"], second});
     },
     "/launch/1/grid/0", "unknown name 'M'"},
    {"float for an integer", [](json& s) { at(s, "/dimensions/0/minimum") = 1.5; }, "/dimensions/0/minimum",
     "expected an integer"},
    {"float for an expression", [](json& s) { at(s, "/work/flops") = 2.5; }, "/work/flops", "expected an integer"},
    {"float among integers", [](json& s) { at(s, "/parameters/0/values/2") = 128.0; }, "/parameters/0/values/2",
     "another type"},
    {"integer for a flag", [](json& s) { at(s, "/dimensions/1/fixed") = 1; }, "/dimensions/1/fixed", "true or false"},
    {"text for a flag", [](json& s) { at(s, "/dimensions/0/varies") = "yes"; }, "/dimensions/0/varies",
     "true or false"},
    {"null as a value", [](json& s) { at(s, "/parameters/0/values/2") = nullptr; }, "/parameters/0/values/2",
     "expected text"},
    {"number beyond 64 bits", [](json& s) { at(s, "/parameters/0/values/3") = 18446744073709551615U; },
     "/parameters/0/values/3", "64 bits"},
    {"no values", [](json& s) { at(s, "/parameters/0/values") = json::array(); }, "/parameters/0/values", "1 to 4096"},
    {"default outside its list", [](json& s) { at(s, "/parameters/0/default") = 48; }, "/parameters/0/default",
     "48 is not among the values of 'BLOCK'"},
    {"default of another type", [](json& s) { at(s, "/parameters/0/default") = "64"; }, "/parameters/0/default",
     "not among"},
    {"duplicate value", [](json& s) { at(s, "/parameters/1/values/2") = 2; }, "/parameters/1/values/2",
     "is a duplicate"},
    {"duplicate element type", [](json& s) { at(s, "/types/0/values/1") = "float32"; }, "/types/0/values/1",
     "is a duplicate"},
    {"type that the packed formats have",
     [](json& s) {
       at(s, "/types/0/values") = {"q8_0", "packed"};
     },
     "/types/0/values/1", "is a duplicate"},
    {"duplicate parameter", [](json& s) { at(s, "/parameters/1/name") = "BLOCK"; }, "/parameters/1/name",
     "'BLOCK' is used twice"},
    {"dimension named as a parameter", [](json& s) { at(s, "/dimensions/0/name") = "ITEMS"; }, "/dimensions/0/name",
     "used twice"},
    {"macro named as a dimension", [](json& s) { at(s, "/macros/0/name") = "N"; }, "/macros/0/name", "used twice"},
    {"name that is none", [](json& s) { at(s, "/parameters/0/name") = "BLOCK-X"; }, "/parameters/0/name", "identifier"},
    {"name with sizeof", [](json& s) { at(s, "/parameters/0/name") = "sizeof(X)"; }, "/parameters/0/name",
     "identifier"},
    {"name of a function", [](json& s) { at(s, "/parameters/0/name") = "log2"; }, "/parameters/0/name",
     "word of the expression language"},
    {"name of a limit", [](json& s) { at(s, "/dimensions/0/name") = "device_warp_size"; }, "/dimensions/0/name",
     "device_"},
    {"name that is a word of C++", [](json& s) { at(s, "/parameters/0/name") = "return"; }, "/parameters/0/name",
     "'return' is a keyword of C++"},
    {"name that is the compiler's", [](json& s) { at(s, "/types/0/name") = "__global__"; }, "/types/0/name",
     "reserved for the compiler"},
    {"parameter that is a variable of CUDA", [](json& s) { at(s, "/parameters/0/name") = "blockIdx"; },
     "/parameters/0/name", "'blockIdx' is a variable that CUDA gives every kernel"},
    {"option that is a variable of CUDA", [](json& s) { at(s, "/parameters/5/name") = "warpSize"; },
     "/parameters/5/name", "'warpSize' is a variable that CUDA"},
    {"dimension that is a variable of CUDA", [](json& s) { at(s, "/dimensions/0/name") = "threadIdx"; },
     "/dimensions/0/name", "'threadIdx' is a variable that CUDA"},
    {"type that is a variable of CUDA", [](json& s) { at(s, "/types/0/name") = "gridDim"; }, "/types/0/name",
     "'gridDim' is a variable that CUDA"},
    {"macro that is a variable of CUDA", [](json& s) { at(s, "/macros/0/name") = "blockDim"; }, "/macros/0/name",
     "'blockDim' is a variable that CUDA"},
    {"function that is a variable of CUDA", [](json& s) { at(s, "/launch/function") = "threadIdx"; },
     "/launch/function", "'threadIdx' is a variable that CUDA"},
    {"macro that is the program's", [](json& s) { at(s, "/macros/0/name") = "PASCALINE_HOST_DEVICE"; },
     "/macros/0/name", "the program's own"},
    {"value with code", [](json& s) { at(s, "/parameters/3/values/1") = "ca; system(\"id\")"; },
     "/parameters/3/values/1", "is not allowed as a macro value"},
    {"function whose arguments do something", [](json& s) { at(s, "/launch/function") = "scale<(1, 2)>"; },
     "/launch/function", "'scale<(1, 2)>' has template arguments that are not allowed"},
    {"function with more than arguments", [](json& s) { at(s, "/launch/function") = "scale<4>, x<5>"; },
     "/launch/function", "goes on after its template arguments"},
    {"function without an end", [](json& s) { at(s, "/launch/function") = "app::scale<4"; },
     "/launch/function", "without a closing '>'"},
    {"function of no namespace", [](json& s) { at(s, "/launch/function") = "::scale<4>"; },
     "/launch/function", "is not an identifier of C++"},
    {"function with code", [](json& s) { at(s, "/launch/function") = "scale);int x=system(\"id\""; },
     "/launch/function", "is not an identifier of C++"},
    {"function of a reference with code",
     [](json& s) {
       at(s, "/reference") = {{"kernel", {{"function", "f)"}, {"block", {1}}, {"grid", {1}}}}};
     },
     "/reference/kernel/function", "is not an identifier of C++"},
    {"option that reads a file", [](json& s) { at(s, "/parameters/5/option") = "--pre-include=/etc/passwd"; },
     "/parameters/5/option", "'--pre-include=/etc/passwd32' is not an allowed compiler option"},
    {"option with a folder", [](json& s) { at(s, "/parameters/5/option") = "-I/tmp/"; }, "/parameters/5/option",
     "maxrregcount, use_fast_math"},
    {"argument that is no name", [](json& s) { at(s, "/arguments/0/name") = "x y"; }, "/arguments/0/name",
     "not an identifier"},
    {"kernel beyond its folder", [](json& s) { s["kernel"] = "../scale"; }, "/kernel", "is not a kernel's name"},
    {"omit without option", [](json& s) { at(s, "/parameters/0/omit") = 32; }, "/parameters/0/omit", "'option'"},
    {"omit outside the list", [](json& s) { at(s, "/parameters/5/omit") = 1; }, "/parameters/5/omit", "not among"},
    {"unknown element type", [](json& s) { at(s, "/types/0/values/0") = "float"; }, "/types/0/values/0", "'float'"},
    {"no element type", [](json& s) { at(s, "/types/0/values") = json::array(); }, "/types/0/values", "at least one"},
    {"four block dimensions",
     [](json& s) {
       at(s, "/launch/block") = {1, 1, 1, 1};
     },
     "/launch/block", "one to three"},
    {"no grid", [](json& s) { at(s, "/launch/grid") = json::array(); }, "/launch/grid", "one to three"},
    {"unknown buffer type", [](json& s) { at(s, "/arguments/0/buffer") = "OUTPUT"; }, "/arguments/0/buffer", "OUTPUT"},
    {"buffer and scalar", [](json& s) { at(s, "/arguments/0/scalar") = "int32"; }, "/arguments/0", "either"},
    {"neither", [](json& s) { at(s, "/arguments/2").erase("scalar"); }, "/arguments/2", "either"},
    {"unknown access", [](json& s) { at(s, "/arguments/0/access") = "read"; }, "/arguments/0/access", "in, out"},
    {"unknown fill", [](json& s) { at(s, "/arguments/0/fill") = "ones"; }, "/arguments/0/fill", "uniform"},
    {"fill of nothing", [](json& s) { at(s, "/arguments/0/low") = 2; }, "/arguments/0", "which is lower"},
    {"scalar with access", [](json& s) { at(s, "/arguments/2/access") = "in"; }, "/arguments/2/access", "'value' only"},
    {"scalar with low", [](json& s) { at(s, "/arguments/2/low") = 0; }, "/arguments/2/low", "'value' only"},
    {"buffer with value", [](json& s) { at(s, "/arguments/0/value") = 1; }, "/arguments/0", "'extent'"},
    {"argument twice", [](json& s) { at(s, "/arguments/1/name") = "x"; }, "/arguments/1", "is a duplicate"},
    {"no output", [](json& s) { at(s, "/arguments/1/access") = "in"; }, "/arguments", "'out' or 'inout'"},
    {"no reference", [](json& s) { s["reference"] = json::object(); }, "/reference", "'kernel'"},
    {"slack of an input",
     [](json& s) {
       s["reference"] = {{"kernel", {{"function", "naive"}, {"block", {1}}, {"grid", {1}}}}, {"slack", "x"}};
     },
     "/reference/slack", "'x' names no buffer with access 'out'"},
    {"workspace of the default",
     [](json& s) {
       s["reference"] = {{"default", true}, {"workspace", 1}};
     },
     "/reference", "'workspace'"},
    {"unknown tolerance", [](json& s) { at(s, "/tolerance/half") = 1; }, "/tolerance/half", "unknown element type"},
    {"negative floor", [](json& s) { at(s, "/tolerance/floor") = -1; }, "/tolerance/floor", "negative"},
    {"factor of a tolerance that is no expression", [](json& s) { at(s, "/tolerance/factor") = "NOSUCH + 1"; },
     "/tolerance/factor", "unknown name 'NOSUCH'"},
    {"sum without its terms",
     [](json& s) {
       at(s, "/tolerance/sum") = {{"of", {"x"}}};
     },
     "/tolerance/sum", "terms"},
    {"sum of an output",
     [](json& s) {
       at(s, "/tolerance/sum") = {{"terms", "N"}, {"of", {"x", "y"}}};
     },
     "/tolerance/sum/of/1", "no buffer 'y' with access 'in'"},
    {"sum of nothing",
     [](json& s) {
       at(s, "/tolerance/sum") = {{"terms", "N"}, {"of", json::array()}};
     },
     "/tolerance/sum/of", "at least one argument"},
    {"product of sums of what is not told",
     [](json& s) {
       at(s, "/tolerance/sum") = {{"terms", "N"}, {"product_of", 2}};
     },
     "/tolerance/sum/product_of", "can be used with 'of'"},
    {"positive sum with terms that have signs",
     [](json& s) {
       at(s, "/tolerance/sum") = {{"terms", "N"}, {"of", {"x"}}, {"positive", true}};
     },
     "/tolerance/sum/positive", "cannot be used with 'of'"},
    {"sum in whole numbers",
     [](json& s) {
       at(s, "/tolerance/sum") = {{"terms", "N"}, {"type", "int32"}};
     },
     "/tolerance/sum/type", "int32 is not a floating-point type"},
    {"sum with an unknown key",
     [](json& s) {
       at(s, "/tolerance/sum") = {{"terms", "N"}, {"term", "N"}};
     },
     "/tolerance/sum", "unknown key 'term'"},
    {"no tolerance for a second output",
     [](json& s) {
       at(s, "/arguments").push_back({{"name", "z"}, {"buffer", "bfloat16"}, {"access", "out"}, {"extent", "N"}});
     },
     "/tolerance", "no entry for bfloat16, a type of the output 'z'"},
    {"definition of a name that is taken",
     [](json& s) {
       s["definitions"] = json::array({{{"name", "BLOCK"}, {"value", "N"}}});
     },
     "/definitions/0/name", "used twice"},
    {"definition that uses a macro",
     [](json& s) {
       s["definitions"] = json::array({{{"name", "HALF"}, {"value", "ALIGNED / 2"}}});
     },
     "/definitions/0/value", "unknown name 'ALIGNED'"},
    {"negative tolerance", [](json& s) { at(s, "/tolerance/float32") = -1; }, "/tolerance/float32", "negative"},
    {"default that names a parameter", [](json& s) { at(s, "/dimensions/1/default") = "BLOCK"; },
     "/dimensions/1/default", "only dimensions before it"},
    {"default that names itself", [](json& s) { at(s, "/dimensions/1/default") = "WIDTH"; }, "/dimensions/1/default",
     "unknown name 'WIDTH'"},
    {"default that names a later dimension", [](json& s) { at(s, "/dimensions/0/default") = "2 * WIDTH"; },
     "/dimensions/0/default", "unknown name 'WIDTH'"},
    {"default that names a size", [](json& s) { at(s, "/dimensions/1/default") = "sizeof(STORAGE)"; },
     "/dimensions/1/default", "unknown name"},
    {"default that names a limit", [](json& s) { at(s, "/dimensions/1/default") = "device_warp_size"; },
     "/dimensions/1/default", "unknown name"},
    {"default that does not parse", [](json& s) { at(s, "/dimensions/1/default") = "N +"; }, "/dimensions/1/default",
     "column 4"},
    {"real default", [](json& s) { at(s, "/dimensions/1/default") = 2.5; }, "/dimensions/1/default", "an integer"},
    {"maximum below the minimum", [](json& s) { at(s, "/dimensions/1/maximum") = 1; }, "/dimensions/1/maximum",
     "below the minimum 2"},
    {"maximum as text", [](json& s) { at(s, "/dimensions/1/maximum") = "9"; }, "/dimensions/1/maximum", "an integer"},
    {"example above the maximum",
     [](json& s) {
       at(s, "/dimensions/1/maximum") = 9;
       at(s, "/dimensions/1/example") = 10;
     },
     "/dimensions/1/example", "between the minimum 2 and the maximum 9"},
    {"type like none", [](json& s) { at(s, "/types/0/like") = "OTHER"; }, "/types/0/like", "no type variable 'OTHER'"},
    {"type like itself", [](json& s) { at(s, "/types/0/like") = "STORAGE"; }, "/types/0/like", "before this one"},
    {"type like a wider one",
     [](json& s) {
       at(s, "/types").push_back({{"name", "OUT"}, {"values", {"float32"}}, {"like", "STORAGE"}});
     },
     "/types/1/like", "'STORAGE' may be float16, which 'OUT' may not"},
    {"low that does not parse", [](json& s) { at(s, "/arguments/0/low") = "N -"; }, "/arguments/0/low", "column 4"},
    {"high of an unknown name", [](json& s) { at(s, "/arguments/0/high") = "M"; }, "/arguments/0/high",
     "unknown name 'M'"},
    {"low that is a flag", [](json& s) { at(s, "/arguments/0/low") = true; }, "/arguments/0/low", "a number"},
    {"deviation below zero",
     [](json& s) {
       at(s, "/arguments/0/fill") = "normal";
       at(s, "/arguments/0/high") = -1;
     },
     "/arguments/0/high", "must not be negative"},
    {"option that reads a file", [](json& s) { s["options"] = {"--use_fast_math", "--include-path=/etc"}; }, "/options/1",
     "is not an allowed compiler option"},
    {"fraction in a whole number", [](json& s) { at(s, "/arguments/2/value") = 0.5; }, "/arguments/2/value",
     "which only scalars of floating-point types hold"},
    {"number beyond its type",
     [](json& s) { at(s, "/arguments/2").update({{"scalar", "float32"}, {"value", 1e50}}); }, "/arguments/2/value",
     "is more than float32 holds"},
    {"sorted from high to low",
     [](json& s) { at(s, "/arguments/0").update({{"fill", "sorted"}, {"low", 2}, {"high", 1}}); }, "/arguments/0",
     "fills from 2 to 1, which is lower"},
    {"fraction in a bool", [](json& s) { at(s, "/arguments/2").update({{"scalar", "bool"}, {"value", 0.5}}); },
     "/arguments/2/value", "floating-point types"},
    {"more than float16 holds", [](json& s) { at(s, "/arguments/2").update({{"scalar", "float16"}, {"value", 7e4}}); },
     "/arguments/2/value", "more than float16 holds"},
    {"vector of too few values",
     [](json& s) { at(s, "/arguments/2").update({{"scalar", "float3"}, {"value", {1, 2}}}); }, "/arguments/2/value",
     "a list of 3 values, those of float3"},
    {"vector of one number", [](json& s) { at(s, "/arguments/2").update({{"scalar", "float3"}, {"value", 1}}); },
     "/arguments/2/value", "a list of 3 values"},
    {"fraction in a vector of integers",
     [](json& s) { at(s, "/arguments/2").update({{"scalar", "int2"}, {"value", {1, 0.5}}}); }, "/arguments/2/value/1",
     "floating-point types"},
    {"no tolerance for a vector's type", [](json& s) { at(s, "/arguments/1/buffer") = "int4"; }, "/tolerance", "int32"},
    {"structure of a taken name",
     [](json& s) { s["structs"] = json::parse(R"([{"name": "float4", "members": [["a", "int8"]]}])"); }, "/structs/0/name",
     "there is a type 'float4' already"},
    {"structure without members",
     [](json& s) { s["structs"] = json::parse(R"([{"name": "P", "members": []}])"); }, "/structs/0/members",
     "at least one member"},
    {"member of an unknown type",
     [](json& s) { s["structs"] = json::parse(R"([{"name": "P", "members": [["a", "Q"]]}])"); }, "/structs/0/members/0/1", "'Q'"},
    {"member of a packed format",
     [](json& s) { s["structs"] = json::parse(R"([{"name": "P", "members": [["a", "q4_0"]]}])"); }, "/structs/0/members/0/1",
     "format of matrices"},
    {"member twice", [](json& s) { s["structs"] = json::parse(R"([{"name": "P", "members": [["a", "int8"], ["a", "int8"]]}])"); },
     "/structs/0/members/1/0", "duplicate"},
    {"member of no elements",
     [](json& s) { s["structs"] = json::parse(R"([{"name": "P", "members": [["a", "int8", 0]]}])"); }, "/structs/0/members/0/2",
     "1 to 1024"},
    {"member that is a keyword",
     [](json& s) { s["structs"] = json::parse(R"([{"name": "P", "members": [["int", "int8"]]}])"); }, "/structs/0/members/0/0",
     "keyword"},
    {"fill of a member that is not there",
     [](json& s) { at(s, "/arguments/0").update({{"buffer", "float2"}, {"members", {{"z", {{"low", 0}}}}}}); },
     "/arguments/0/members/z", "no such member"},
    {"fill of a member the wrong way",
     [](json& s) {
       at(s, "/arguments/0").update({{"buffer", "float2"}, {"members", {{"x", {{"low", 2}, {"high", 1}}}}}});
     },
     "/arguments/0/members/x", "which is lower"},
    {"members of plain numbers", [](json& s) { at(s, "/arguments/0/members") = json::object(); },
     "/arguments/0/members", "vectors and structures"},
    {"variable that is written", [](json& s) { at(s, "/arguments/1/symbol") = "table"; }, "/arguments/1/symbol",
     "a variable of the file is only read"},
    {"variable without a name", [](json& s) { at(s, "/arguments/0/symbol") = "filters::"; }, "/arguments/0/symbol",
     "give the name of a variable"},
    {"variable that is a scalar", [](json& s) { at(s, "/arguments/2/symbol") = "table"; }, "/arguments/2/symbol",
     "a scalar has 'value' only"},
    {"texture that is written", [](json& s) { at(s, "/arguments/1/texture") = json::object(); }, "/arguments/1/texture",
     "a texture is only read"},
    {"texture of pairs of doubles",
     [](json& s) {
       at(s, "/arguments/0").update({{"buffer", "double2"}, {"texture", json::object()}});
     },
     "/arguments/0/texture", "or a vector of 1, 2 or 4"},
    {"texture of three",
     [](json& s) {
       at(s, "/arguments/0").update({{"buffer", "float3"}, {"texture", json::object()}});
     },
     "/arguments/0/texture", "or a vector of 1, 2 or 4"},
    {"address without columns",
     [](json& s) {
       at(s, "/arguments/0").update({{"buffer", "float32"}, {"texture", {{"address", "border"}}}});
     },
     "/arguments/0/texture/address", "give the buffer 'columns'"},
    {"unknown address mode",
     [](json& s) {
       at(s, "/arguments/0").update({{"buffer", "float32"}, {"columns", "N"}, {"texture", {{"address", "wrap"}}}});
     },
     "/arguments/0/texture/address", "clamp"},
    {"interpolated integers",
     [](json& s) {
       at(s, "/arguments/0").update({{"buffer", "int8"}, {"columns", "N"}, {"texture", {{"filter", "linear"}}}});
     },
     "/arguments/0/texture/filter", "use 'point'"},
    {"normalized floats",
     [](json& s) {
       at(s, "/arguments/0").update({{"buffer", "float32"}, {"texture", {{"read", "normalized"}}}});
     },
     "/arguments/0/texture/read", "leave 'read' out"},
    {"texture that is a variable, too",
     [](json& s) {
       at(s, "/arguments/0").update({{"buffer", "float32"}, {"symbol", "t"}, {"texture", json::object()}});
     },
     "/arguments/0/texture", "cannot have both"},
    {"missing tolerance", [](json& s) { at(s, "/tolerance").erase("float16"); }, "/tolerance", "no entry for float16"},
    {"default breaks a constraint",
     [](json& s) {
       at(s, "/parameters/0/values") = {64, 256};
       at(s, "/parameters/1/default") = 4;
       at(s, "/parameters/0/default") = 256;
     },
     "/constraints/0", "the default configuration breaks this constraint"},
    {"constraints leave nothing", [](json& s) { at(s, "/constraints/0/require") = "BLOCK * ITEMS < 32"; },
     "/constraints/0", "the constraints leave no valid configuration"},
    {"constraint that never has a value", [](json& s) { at(s, "/constraints/0/require") = "BLOCK / 0 == 0"; },
     "/constraints/0", "leave no valid configuration"},
};

TEST(SpaceParserTest, EveryMistakeIsNamedWithItsPlace) {
  for (const BadSpace& test : kBadSpaces) {
    json space = small_space();
    test.change(space);
    try {
      (void)Space::parse(space.dump(), "scale.json");
      ADD_FAILURE() << "accepted: " << test.name;
    } catch (const SpaceError& error) {
      EXPECT_EQ(error.file(), "scale.json") << test.name;
      EXPECT_EQ(error.pointer(), test.pointer) << test.name << ": " << error.what();
      EXPECT_NE(std::string(error.what()).find(test.message), std::string::npos) << test.name << ": " << error.what();
    }
  }
}

TEST(SpaceParserTest, TheSmallSpaceItselfIsRight) {
  const Space space = Space::parse(small_space().dump(), "scale.json");
  EXPECT_EQ(space.kernel, "scale");
  EXPECT_EQ(space.parameters.size(), 6U);
  EXPECT_DOUBLE_EQ(space.raw_size(), 4 * 3 * 2 * 2 * 2 * 2);
  EXPECT_EQ(space.general_default().text(), "BLOCK=64 CACHED=1 ITEMS=2 MAX_REGISTERS=0 MODE=ca RATIO=1.0");
  EXPECT_DOUBLE_EQ(space.tolerance(ElementType::float16), 1e-3);
  EXPECT_THROW((void)space.tolerance(ElementType::int8), SpaceError);
  EXPECT_EQ(space.arguments[0].fill, Fill::uniform);
  EXPECT_EQ(space.arguments[1].fill, Fill::none);
  EXPECT_TRUE(space.dimensions[1].fixed);
  EXPECT_TRUE(space.dimensions[0].varies);
  EXPECT_FALSE(space.dimensions[1].varies);
}

// Returns seconds of the processor.
double time_to_read(int macros) {
  json space = small_space();
  space["macros"] = json::array();
  for (int i = 0; i < macros; ++i) {
    space["macros"].push_back({{"name", "MACRO_" + std::to_string(i)}, {"value", "N"}});
  }
  const std::string text = space.dump();
  const std::clock_t start = std::clock();
  EXPECT_EQ(Space::parse(text, "scale.json").derived.size(), static_cast<std::size_t>(macros));
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// Names are looked up in time that hardly grows with their number: with a walk over all, ten times as many macros would
// take a hundred times as long.
TEST(SpaceParserTest, ManyMacrosAreReadInTimeThatGrowsAsTheirNumber) {
  EXPECT_LT(time_to_read(50'000), 40 * time_to_read(5'000));
}

TEST(SpaceParserTest, AnArchitectureMayHaveDefaultsOfItsOwn) {
  json text = small_space();
  text["defaults"]["sm_61"] = {{"BLOCK", 128}};
  const Space space = Space::parse(text.dump(), "scale.json");
  EXPECT_EQ(space.general_default().text(), "BLOCK=64 CACHED=1 ITEMS=2 MAX_REGISTERS=0 MODE=ca RATIO=1.0");
  EXPECT_EQ(space.defaults.at(0).name(), "sm_61");
  const Problem problem = space.problem({{"N", "1024"}, {"WIDTH", "4"}});
  const BoundSpace pascal(space, problem, limits_of_architecture("sm_61").value());
  EXPECT_EQ(pascal.default_config().text(), "BLOCK=128 CACHED=1 ITEMS=2 MAX_REGISTERS=0 MODE=ca RATIO=1.0");
  EXPECT_EQ(pascal.base_slots().at(0), 128) << "work and extents are those of this default";
  const DeviceLimits hopper = limits_of_architecture("sm_90").value();
  EXPECT_EQ(BoundSpace(space, problem, hopper).default_config(), space.general_default());
  const DeviceLimits both = tighter(hopper, pascal.limits());
  EXPECT_EQ(BoundSpace(space, problem, both).default_config(), pascal.default_config()) << "code for sm_61 on sm_90";
}

TEST(SpaceParserTest, AnArchitectureMayHaveDefaultsForSomeProblems) {
  json text = small_space();
  text["defaults"]["sm_61"] = {{{"if", "N % 3 == 0"}, {"set", {{"BLOCK", 128}}}},
                               {{"if", "1 / (N - 5) == 0 && N > 100"}, {"set", {{"BLOCK", 32}, {"ITEMS", 4}}}}};
  const Space space = Space::parse(text.dump(), "scale.json");
  const auto on = [&](const char* architecture, const char* n) {
    return BoundSpace(space, space.problem({{"N", n}, {"WIDTH", "4"}}), limits_of_architecture(architecture).value());
  };
  const std::string rest = " MAX_REGISTERS=0 MODE=ca RATIO=1.0";
  EXPECT_EQ(on("sm_61", "300").default_config().text(), "BLOCK=128 CACHED=1 ITEMS=2" + rest);
  EXPECT_EQ(on("sm_61", "301").default_config().text(), "BLOCK=32 CACHED=1 ITEMS=4" + rest);
  EXPECT_EQ(on("sm_61", "301").base_slots().at(0), 32) << "work and extents are those of this default";
  EXPECT_EQ(on("sm_61", "7").default_config(), space.general_default());
  EXPECT_EQ(on("sm_61", "5").default_config(), space.general_default()) << "a condition without a value does not hold";
  EXPECT_EQ(on("sm_90", "300").default_config(), space.general_default());
  EXPECT_EQ(space.default_config(on("sm_61", "300").limits()), space.general_default())
      << "of no problem in particular";
  EXPECT_EQ(space.defaults.at(0).name(), "sm_61 if N % 3 == 0");
}

TEST(SpaceParserTest, AnyDeviceMayHaveDefaultsForSomeProblems) {
  json text = small_space();
  text["defaults"]["any"] = {{{"if", "N > 100"}, {"set", {{"BLOCK", 128}}}}};
  text["defaults"]["sm_61"] = {{{"if", "N % 3 == 0"}, {"set", {{"BLOCK", 32}}}}};
  const Space space = Space::parse(text.dump(), "scale.json");
  const auto block = [&](const char* architecture, const char* n) {
    const DeviceLimits limits = limits_of_architecture(architecture).value();
    return BoundSpace(space, space.problem({{"N", n}, {"WIDTH", "4"}}), limits).base_slots().at(0);
  };
  EXPECT_EQ(block("sm_90", "300"), 128);
  EXPECT_EQ(block("sm_61", "301"), 128);
  EXPECT_EQ(block("sm_61", "300"), 32) << "the architecture's own come first";
  EXPECT_EQ(block("sm_61", "7"), 64);
  EXPECT_EQ(space.defaults.at(0).name(), "any device if N > 100");
}

TEST(SpaceParserTest, AParameterMayHaveAMeaningForSomeProblemsOnly) {
  json text = small_space();
  text["parameters"][0]["when"] = "LARGE";
  text["definitions"].push_back({{"name", "LARGE"}, {"value", "N > 100"}});
  const Space space = Space::parse(text.dump(), "scale.json");
  const auto why = [&](const char* n, std::int64_t block) {
    const BoundSpace bound(space, space.problem({{"N", n}, {"WIDTH", "4"}}), {});
    std::vector<std::uint16_t> indices = bound.default_indices();
    const auto& values = space.parameters[0].values;
    indices[0] = static_cast<std::uint16_t>(std::ranges::find(values, Value(block)) - values.begin());
    return bound.why_invalid(space.config_at(indices)).value_or("valid");
  };
  EXPECT_EQ(why("1024", 128), "valid");
  EXPECT_EQ(why("8", 64), "valid");
  EXPECT_EQ(why("8", 128), "BLOCK has a meaning only where LARGE ((LARGE) || BLOCK == 64)");
}

TEST(SpaceParserTest, ArithmeticMayFollowFromAType) {
  const auto with = [](ElementType weight) {
    return Problem{"product", {}, {{"STORAGE", ElementType::int8}, {"WEIGHT", weight}}};
  };
  EXPECT_TRUE(is_int8_work("WEIGHT", with(ElementType::q4_k)));
  EXPECT_FALSE(is_int8_work("WEIGHT", with(ElementType::float16x)));
  EXPECT_FALSE(is_int8_work("STORAGE", with(ElementType::q4_k))) << "elements of no format";
  EXPECT_TRUE(is_int8_work("int8", with(ElementType::float32)));
  EXPECT_FALSE(is_int8_work("float32", with(ElementType::q4_k)));
}

TEST(SpaceParserTest, APortfolioSaysWhatDiffersFromTheDefaultOfTheSameDevices) {
  json text = small_space();
  text["defaults"]["sm_61"] = {{"BLOCK", 128}};
  text["portfolio"] = {{{"ITEMS", 4}}, {{"BLOCK", 32}, {"CACHED", false}}};
  text["portfolios"]["sm_61"] = {{{"ITEMS", 1}}, {{"BLOCK", 64}}};
  const Space space = Space::parse(text.dump(), "scale.json");
  const auto texts = [&](const char* architecture) {
    std::vector<std::string> out;
    for (const Config& config : space.portfolio_for(limits_of_architecture(architecture).value())) {
      out.push_back(config.text());
    }
    return out;
  };
  EXPECT_EQ(texts("sm_75"), (std::vector<std::string>{"BLOCK=64 CACHED=1 ITEMS=4 MAX_REGISTERS=0 MODE=ca RATIO=1.0",
                                                      "BLOCK=32 CACHED=0 ITEMS=2 MAX_REGISTERS=0 MODE=ca RATIO=1.0"}));
  EXPECT_EQ(texts("sm_61"), (std::vector<std::string>{"BLOCK=128 CACHED=1 ITEMS=1 MAX_REGISTERS=0 MODE=ca RATIO=1.0",
                                                      "BLOCK=64 CACHED=1 ITEMS=2 MAX_REGISTERS=0 MODE=ca RATIO=1.0"}));
  text.erase("portfolios");
  EXPECT_EQ(Space::parse(text.dump(), "scale.json").portfolio_for(limits_of_architecture("sm_61").value()).size(), 2U)
      << "without one of its own, the general one";
}

TEST(SpaceParserTest, LaunchesOfAPipelineHaveArgumentsAndGeometriesOfTheirOwn) {
  json text = small_space();
  json second = text["launch"];
  second["function"] = "again";
  second["grid"] = {3};
  second["arguments"] = {text["arguments"][1]["name"], text["arguments"][0]["name"]};
  text["launch"] = json::array({text["launch"], second});
  const Space space = Space::parse(text.dump(), "scale.json");
  ASSERT_EQ(space.launches.size(), 2U);
  EXPECT_EQ(space.launches[0].arguments.size(), space.arguments.size());
  EXPECT_EQ(space.launches[1].arguments, (std::vector<std::size_t>{1, 0}));
  BoundSpace bound(space, space.problem({{"N", "1000"}, {"WIDTH", "4"}}), DeviceLimits());
  EXPECT_EQ(bound.geometries(space.general_default())[1].grid[0], 3U);
  text["launch"][1]["block"] = {2048};
  const Space too_large = Space::parse(text.dump(), "scale.json");
  const BoundSpace refused(too_large, bound.problem(), DeviceLimits());
  const std::string why = refused.why_invalid(too_large.general_default()).value_or("every launch fits");
  EXPECT_TRUE(why.starts_with("again: ")) << why;
}

TEST(SpaceParserTest, AReferenceTakesEveryOutput) {
  json text = small_space();
  const json::const_iterator in = std::ranges::find_if(
      text["arguments"], [](const json& argument) { return argument.value("access", "") == "in"; });
  ASSERT_NE(in, text["arguments"].cend());
  text["reference"] = {{"kernel", text["launch"]}};
  text["reference"]["kernel"]["arguments"] = json::array({(*in)["name"]});
  try {
    (void)Space::parse(text.dump(), "scale.json");
    ADD_FAILURE() << "parsed";
  } catch (const SpaceError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("/reference/kernel/arguments"), std::string::npos) << message;
    EXPECT_NE(message.find("is missing"), std::string::npos) << message;
  }
}

TEST(SpaceParserTest, DefinitionsStandInExpressionsAndAreNoMacros) {
  json text = small_space();
  text["definitions"] = json::array({{{"name", "TILE"}, {"value", "BLOCK * ITEMS"}}});
  at(text, "/constraints/0/require") = "TILE <= 256";
  at(text, "/macros/0/value") = "N % TILE == 0";
  at(text, "/launch/grid/0") = "ceil_div(N, TILE)";
  at(text, "/tolerance/floor") = 0.5;
  const Space space = Space::parse(text.dump(), "scale.json");
  EXPECT_DOUBLE_EQ(space.error_floor, 0.5);
  ASSERT_EQ(space.derived.size(), 1U);
  EXPECT_EQ(space.derived[0].name, "ALIGNED");
  const BoundSpace bound(space, space.problem({{"N", "1000"}, {"WIDTH", "4"}}), DeviceLimits());
  EXPECT_EQ(bound.geometry(space.launches.front(), space.general_default()).grid[0], 8);
  EXPECT_EQ(Space::parse(small_space().dump(), "scale.json").error_floor, 0);
}

TEST(SpaceParserTest, ATolerancesFactorMayDependOnTheProblem) {
  json text = small_space();
  at(text, "/tolerance/factor") = "N / 500";
  const Space space = Space::parse(text.dump(), "scale.json");
  const auto of = [&](const char* n) {
    const BoundSpace bound(space, space.problem({{"N", n}, {"WIDTH", "4"}}), DeviceLimits());
    return bound.tolerance(ElementType::float16);
  };
  EXPECT_DOUBLE_EQ(of("1000"), 2e-3);
  EXPECT_DOUBLE_EQ(of("500"), 1e-3);
  EXPECT_THROW((void)of("100"), Error);
}

TEST(SpaceParserTest, DimensionsMayHaveDefaultsAndAMaximum) {
  json text = small_space();
  at(text, "/dimensions/0/maximum") = 100;
  at(text, "/dimensions/1/default") = "max(2, N / 4)";
  const Space space = Space::parse(text.dump(), "scale.json");
  EXPECT_EQ(space.dimensions[0].maximum, 100);
  EXPECT_EQ(space.dimensions[0].example, 100) << "the nearest that is allowed";
  EXPECT_FALSE(space.dimensions[0].default_value);
  EXPECT_EQ(space.example_problem().text(), "scale N=100 WIDTH=25 STORAGE=float32");
  at(text, "/dimensions/1/default") = 7;
  EXPECT_EQ(Space::parse(text.dump(), "scale.json").example_problem().dimension("WIDTH"), 7);
}

TEST(SpaceParserTest, WhatAKernelDoesMayNotDependOnADimensionThatIsMeasuredSmaller) {
  json document = small_space();
  document["dimensions"].push_back({{"name", "ROWS"}, {"measured_at_most", "4 * N"}});
  document["arguments"][0]["extent"] = "N * WIDTH + ROWS";
  document["arguments"][2]["value"] = "ROWS";
  const auto complaint = [](const json& of) {
    try {
      (void)Space::parse(of.dump(), "scale.json");
    } catch (const SpaceError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(complaint(document), "") << "extents of inputs and scalars may";
  const std::vector<std::pair<json::json_pointer, json>> wrong{
      {json::json_pointer("/constraints/0/require"), "BLOCK <= ROWS"},
      {json::json_pointer("/macros/0/value"), "ROWS % 2"},
      {json::json_pointer("/launch/grid/1"), "ROWS"},
      {json::json_pointer("/launch/block/0"), "min(BLOCK, ROWS)"},
      {json::json_pointer("/launch/shared_bytes"), "ROWS"},
      {json::json_pointer("/arguments/1/extent"), "ROWS"},
      {json::json_pointer("/parameters/1/when"), "ROWS > 5"},
      {json::json_pointer("/work/flops"), "ROWS"},
      {json::json_pointer("/work/bytes"), "N + ROWS"},
      {json::json_pointer("/defaults"), {{"any", {{{"if", "ROWS > 9"}, {"set", {{"BLOCK", 32}}}}}}}},
  };
  for (const auto& [place, text] : wrong) {
    json changed = document;
    changed[place] = text;
    const std::string found = complaint(changed);
    EXPECT_NE(found.find("/dimensions/2/measured_at_most"), std::string::npos) << place << ": " << found;
    EXPECT_NE(found.find("names 'ROWS'"), std::string::npos) << place << ": " << found;
  }
  document["dimensions"][2]["measured_at_most"] = "4 * BLOCK";
  EXPECT_NE(complaint(document).find("names a parameter"), std::string::npos);
}

TEST(SpaceParserTest, PackedStandsForAllPackedFormats) {
  json text = small_space();
  at(text, "/types").push_back({{"name", "WEIGHT"}, {"values", {"float32", "packed", "float16x"}}});
  std::vector<ElementType> expected{ElementType::float32};
  for (const FormatTraits& format : packed_formats()) {
    expected.push_back(format.type);
  }
  expected.push_back(ElementType::float16x);
  EXPECT_EQ(Space::parse(text.dump(), "scale.json").types[1].allowed, expected);
}

TEST(SpaceParserTest, TypesMayFollowOthers) {
  json text = small_space();
  at(text, "/types").push_back({{"name", "OUT"}, {"values", {"int8", "float16", "float32"}}, {"like", "STORAGE"}});
  const Space space = Space::parse(text.dump(), "scale.json");
  EXPECT_EQ(space.types[1].like, 0U);
  EXPECT_FALSE(space.types[0].like);
  EXPECT_EQ(space.example_problem().type("OUT"), ElementType::float32) << "not the first of its own";
}

TEST(SpaceParserTest, FillsRangeOverNumbersOrExpressions) {
  json text = small_space();
  at(text, "/arguments/0/fill") = "ramp";
  at(text, "/arguments/0/low") = 4;
  at(text, "/arguments/0/high") = "N - 1";
  Argument argument = Space::parse(text.dump(), "scale.json").arguments[0];
  EXPECT_EQ(argument.fill, Fill::ramp);
  EXPECT_DOUBLE_EQ(argument.low, 4);
  EXPECT_FALSE(argument.low_value);
  ASSERT_TRUE(argument.high_value);
  EXPECT_EQ(argument.high_value->text(), "N - 1");
  at(text, "/arguments/0/high") = 1;  // a ramp may fall
  EXPECT_DOUBLE_EQ(Space::parse(text.dump(), "scale.json").arguments[0].high, 1);
}

TEST(SpaceParserTest, ARampOfEachRowNeedsColumns) {
  json text = small_space();
  at(text, "/arguments/0/fill") = "row_ramp";
  try {
    (void)Space::parse(text.dump(), "scale.json");
    FAIL() << "taken without columns";
  } catch (const SpaceError& error) {
    EXPECT_NE(std::string(error.what()).find("needs 'columns'"), std::string::npos) << error.what();
  }
  at(text, "/arguments/0/columns") = "N";
  const Argument argument = Space::parse(text.dump(), "scale.json").arguments[0];
  EXPECT_EQ(argument.fill, Fill::row_ramp);
  EXPECT_TRUE(argument.columns);
}

TEST(SpaceParserTest, DuplicateKeyInTheText) {
  std::string text = small_space().dump();
  text.insert(text.find("\"default\":2"), "\"default\":4,");
  try {
    (void)Space::parse(text, "scale.json");
    FAIL() << "accepted";
  } catch (const SpaceError& error) {
    EXPECT_EQ(error.pointer(), "/parameters/1/default");
  }
}

TEST(SpaceParserTest, EveryTruncationIsRefusedWithLineAndColumn) {
  const std::string text = small_space().dump(1);
  for (std::size_t size = 0; size < text.size(); size += 7) {
    try {
      (void)Space::parse(text.substr(0, size), "scale.json");
      ADD_FAILURE() << "accepted " << size << " bytes";
    } catch (const SpaceError& error) {
      EXPECT_NE(std::string(error.what()).find("not valid JSON at line "), std::string::npos) << error.what();
    }
  }
}

TEST(SpaceParserTest, HashIgnoresLayoutButNotContent) {
  const json space = small_space();
  json other = space;
  at(other, "/parameters/0/default") = 128;
  EXPECT_EQ(Space::parse(space.dump(), "a").hash, Space::parse(space.dump(4), "b").hash);
  EXPECT_NE(Space::parse(space.dump(), "a").hash, Space::parse(other.dump(), "a").hash);
}

class SpaceFileTest : public ::testing::Test {
 protected:
  SpaceFileTest() { std::filesystem::create_directories(folder_); }
  ~SpaceFileTest() override { std::filesystem::remove_all(folder_); }
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("pascaline_space_file_test." + std::to_string(::getpid()));
};

TEST_F(SpaceFileTest, KernelMustBeNamedAsTheFile) {
  write_file_atomically(folder_ / "scale.json", small_space().dump());
  EXPECT_EQ(Space::load(folder_ / "scale.json").kernel, "scale");
  write_file_atomically(folder_ / "scales.json", small_space().dump());
  try {
    (void)Space::load(folder_ / "scales.json");
    FAIL() << "accepted";
  } catch (const SpaceError& error) {
    EXPECT_EQ(error.pointer(), "/kernel");
    EXPECT_EQ(error.file(), (folder_ / "scales.json").string());
  }
}

TEST_F(SpaceFileTest, MissingFilesAndFoldersAreNamed) {
  for (const auto& file : {folder_ / "none.json", folder_}) {
    try {
      (void)Space::load(file);
      ADD_FAILURE() << "loaded " << file;
    } catch (const SpaceError& error) {
      EXPECT_EQ(error.file(), file.string());
    }
  }
}

}  // namespace
}  // namespace pascaline
