#include "app/sweep/searcher_names.hpp"

#include "tuner/search/searcher.hpp"

namespace pascaline {

std::vector<std::string> searcher_list() {
  std::vector<std::string> names;
  for (const SearcherName& searcher : searcher_names()) {
    names.emplace_back(searcher.name);
  }
  return names;
}

std::string searchers_help() {
  std::string text;
  for (const SearcherName& searcher : searcher_names()) {
    text += (text.empty() ? "" : "; ") + std::string(searcher.name) + ": " + std::string(searcher.summary);
  }
  return text;
}

}  // namespace pascaline
