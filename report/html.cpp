#include "report/html.hpp"

#include <string_view>

#include <nlohmann/json.hpp>

#include "kReportPage.hpp"
#include "kReportPolicy.hpp"

namespace pascaline {
namespace {

// Inside JSON these characters occur only in strings, where their escapes mean the same. Without them no text can end
// the script element or open a comment in it.
std::string script_safe_json(const nlohmann::ordered_json& document) {
  const std::string json = document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string out;
  out.reserve(json.size() + json.size() / 64);
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '<') {
      out += "\\u003c";
    } else if (c == '>') {
      out += "\\u003e";
    } else if (c == '&') {
      out += "\\u0026";
    } else if (json.compare(i, 3, "\xE2\x80\xA8") == 0) {
      out += "\\u2028";
      i += 2;
    } else if (json.compare(i, 3, "\xE2\x80\xA9") == 0) {
      out += "\\u2029";
      i += 2;
    } else {
      out += c;
    }
  }
  return out;
}

// The document's title as text of an element; what is not UTF-8 is replaced as in the document.
std::string html_title(const nlohmann::ordered_json& document) {
  const auto found = document.find("title");
  if (found == document.end() || !found->is_string()) {
    return "Pascaline report";
  }
  const auto text =
      nlohmann::ordered_json::parse(found->dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace))
          .get<std::string>();
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

bool is_live(const nlohmann::ordered_json& document) {
  const auto found = document.find("live");
  return found != document.end() && found->is_boolean() && found->get<bool>();
}

// Appends the page up to the marker and what takes its place, and takes both from `rest`.
void fill(std::string& out, std::string_view& rest, std::string_view marker, std::string_view text) {
  const std::size_t at = rest.find(marker);
  out += rest.substr(0, at);
  out += text;
  rest.remove_prefix(at + marker.size());
}

}  // namespace

std::string html_report_policy(bool live) { return std::string(kReportPolicy) + (live ? "; connect-src 'self'" : ""); }

std::string html_report(const nlohmann::ordered_json& document) {
  const std::string json = script_safe_json(document);
  std::string_view rest = kReportPage;
  std::string out;
  out.reserve(rest.size() + json.size() + 1024);
  fill(out, rest, "{{policy}}", html_report_policy(is_live(document)));
  fill(out, rest, "{{title}}", html_title(document));
  fill(out, rest, "{{document}}", json);
  out += rest;
  return out;
}

}  // namespace pascaline
