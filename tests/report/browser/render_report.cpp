// The report document on standard input as the HTML page on standard output, for the tests in a browser.
#include <exception>
#include <iostream>

#include <nlohmann/json.hpp>

#include "report/html.hpp"

int main() {
  try {
    std::cout << pascaline::html_report(nlohmann::ordered_json::parse(std::cin));
    return std::cout.flush() ? 0 : 1;
  } catch (const std::exception& failure) {
    std::cerr << "no page: " << failure.what() << '\n';
    return 1;
  }
}
