#include "db/exchange/read.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "db/exchange/readers.hpp"
#include "db/exchange/unpack.hpp"

namespace pascaline {
namespace {

[[noreturn]] void refuse_json(const std::string& file) {
  throw SpaceError(
      file, "",
      "this JSON is neither a cache of Kernel Tuner ('tune_params_keys' and 'cache'), T4 results ('schema_version' "
      "and 'results'), nor results of CLBlast ('kernel_family' and 'results') or KTT ('Metadata' and "
      "'Results')");
}

RecordedSpace parse_recorded_json(std::string_view text, const std::string& file) {
  const JsonOutline outline = outline_json(text);
  if (outline.has("cache") || outline.has("tune_params_keys")) {
    return parse_kernel_tuner(outline, file);
  }
  if (outline.has("kernel_family") && outline.has("results")) {
    return parse_clblast(outline, file);
  }
  if (outline.has("Metadata") && outline.has("Results")) {
    return parse_ktt(outline, file);
  }
  if (outline.has("schema_version")) {
    return parse_t4(outline, file);
  }
  (void)parse_json(outline.text, file);  // a fault of the syntax tells more
  if (outline.has("ConfigurationSpace")) {
    throw SpaceError(
        file, "", "this is a T1 input, a search space without results; `python -m pascaline.import_t1` takes it over");
  }
  refuse_json(file);
}

}  // namespace

RecordedSpace parse_recorded_space(std::string_view text, const std::string& file) {
  if (text.starts_with("\xef\xbb\xbf")) {
    text.remove_prefix(3);  // a byte-order mark
  }
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) {
    throw SpaceError(file, "", "the file is empty");
  }
  if (text.starts_with("SQLite format 3")) {
    throw SpaceError(file, "", "this is a database, not a recorded space of another tuner");
  }
  if (text[start] == '{' || text[start] == '[') {
    return parse_recorded_json(text, file);
  }
  if (text[start] == '<') {
    throw SpaceError(file, "", "this is XML, which cannot be read; KTT writes JSON, too: give it OutputFormat::JSON");
  }
  if (nlohmann::json::accept(text)) {  // null, a number or text alone
    refuse_json(file);
  }
  return parse_recorded_csv(text, file);
}

RecordedSpace read_recorded_space(const std::filesystem::path& file) {
  return parse_recorded_space(read_plain_or_gzip(file), file.string());
}

}  // namespace pascaline
