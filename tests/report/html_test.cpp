#include "report/html.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace pascaline {
namespace {

nlohmann::ordered_json document_with_title(const std::string& title) {
  return {{"format", "pascaline-report"}, {"version", 1}, {"title", title}, {"live", false}};
}

// What is between two texts, the first of them found first.
std::string between(const std::string& page, std::string_view before, std::string_view after) {
  const std::size_t from = page.find(before);
  if (from == std::string::npos) {
    return "no " + std::string(before);
  }
  const std::size_t begin = from + before.size();
  return page.substr(begin, page.find(after, begin) - begin);
}

std::string embedded(const std::string& page) {
  return between(page, R"(<script type="application/json" id="report-document">)", "</script>");
}

TEST(HtmlReport, DocumentComesBackFromThePage) {
  const auto document =
      document_with_title("</script><script>alert(1)</script><!-- & \xE2\x80\xA8 \xE2\x80\xA9 \" ' \\ \n");
  const std::string json = embedded(html_report(document));
  EXPECT_EQ(nlohmann::ordered_json::parse(json), document);
  EXPECT_EQ(json.find_first_of("<>&"), std::string::npos);
  EXPECT_EQ(json.find("\xE2\x80\xA8"), std::string::npos);
  EXPECT_EQ(json.find("\xE2\x80\xA9"), std::string::npos);
}

TEST(HtmlReport, TitleIsText) {
  const std::string page = html_report(document_with_title("</title><script>alert(1)</script> & {{document}}"));
  EXPECT_EQ(between(page, "<title>", "</title>"),
            "&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt; &amp; {{document}}");
  EXPECT_EQ(nlohmann::ordered_json::parse(embedded(page)).at("version"), 1);
}

TEST(HtmlReport, TextsThatLookLikeThePagesPlacesStayTexts) {
  const auto document = document_with_title("{{policy}}{{title}}{{document}}{{script}}");
  const std::string page = html_report(document);
  EXPECT_EQ(nlohmann::ordered_json::parse(embedded(page)), document);
  EXPECT_EQ(between(page, "<title>", "</title>"), "{{policy}}{{title}}{{document}}{{script}}");
}

TEST(HtmlReport, BytesThatAreNotUtf8AreReplaced) {
  const std::string page = html_report(document_with_title("a\xFF\xC0z"));
  EXPECT_EQ(nlohmann::ordered_json::parse(embedded(page)).at("title"), "a\uFFFD\uFFFDz");
  EXPECT_EQ(between(page, "<title>", "</title>"), "a\uFFFD\uFFFDz");
}

TEST(HtmlReport, OnlyALivePageMayAskItsServer) {
  auto document = document_with_title("night");
  EXPECT_EQ(html_report(document).find("connect-src"), std::string::npos);
  document["live"] = true;
  EXPECT_EQ(between(html_report(document), R"(Content-Security-Policy" content=")", "\""), html_report_policy(true));
  EXPECT_EQ(html_report_policy(true), html_report_policy(false) + "; connect-src 'self'");
}

TEST(HtmlReport, PolicyAllowsNothingButThePagesOwnParts) {
  const std::string policy = html_report_policy(false);
  EXPECT_EQ(policy.rfind("default-src 'none'", 0), 0U) << policy;
  EXPECT_EQ(policy.find("unsafe"), std::string::npos) << policy;
  EXPECT_EQ(policy.find("http"), std::string::npos) << policy;
}

TEST(HtmlReport, WhatIsNoDocumentStillMakesAPage) {
  for (const auto& document : {nlohmann::ordered_json(), nlohmann::ordered_json::array({1}),
                               nlohmann::ordered_json("text"), nlohmann::ordered_json{{"title", 5}, {"live", "yes"}}}) {
    const std::string page = html_report(document);
    EXPECT_EQ(between(page, "<title>", "</title>"), "Pascaline report");
    EXPECT_EQ(nlohmann::ordered_json::parse(embedded(page)), document);
    EXPECT_EQ(page.find("connect-src"), std::string::npos);
  }
}

TEST(HtmlReport, LicenceOfTheChartsIsInThePage) {
  const std::string page = html_report(document_with_title("night"));
  EXPECT_NE(page.find("Chart.js v3"), std::string::npos);
  EXPECT_NE(page.find("Permission is hereby granted, free of charge"), std::string::npos);
}

}  // namespace
}  // namespace pascaline
