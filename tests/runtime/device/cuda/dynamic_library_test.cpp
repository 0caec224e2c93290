#include "runtime/device/dynamic_library.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace pascaline {
namespace {

TEST(DynamicLibrary, FindsFunctionsAndSaysWhereItLies) {
  const DynamicLibrary library("libm.so.6");
  EXPECT_DOUBLE_EQ(library.function<double (*)(double)>("cbrt")(27.0), 3.0);
  EXPECT_NE(library.path().find('/'), std::string::npos);
  EXPECT_EQ(library.find("nosuch"), nullptr);
}

TEST(DynamicLibrary, FailuresNameLibraryAndSymbol) {
  try {
    (void)DynamicLibrary("libnosuch.so.9");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("libnosuch.so.9"), std::string::npos);
  }
  std::string why;
  EXPECT_FALSE(DynamicLibrary::try_open("libnosuch.so.9", &why));
  EXPECT_FALSE(why.empty());
  try {
    (void)DynamicLibrary("libm.so.6").function<void (*)()>("nosuch");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("nosuch"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("libm"), std::string::npos);
  }
}

TEST(DynamicLibrary, CanBeMoved) {
  DynamicLibrary first("libm.so.6");
  const DynamicLibrary second = std::move(first);
  EXPECT_NE(second.find("cbrt"), nullptr);
}

}  // namespace
}  // namespace pascaline
