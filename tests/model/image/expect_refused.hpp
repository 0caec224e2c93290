#pragma once

#include <gtest/gtest.h>

#include <string>

#include "core/error.hpp"
#include "model/image/decode.hpp"

namespace pascaline::testing {

/// Expects an Error that begins with the name and holds the text, and silence on stderr.
inline void expect_refused(const std::string& bytes, const std::string& name, const std::string& text,
                           const DecodeOptions& options = {}) {
  ::testing::internal::CaptureStderr();
  std::string message;
  try {
    (void)decode_image(bytes, name, options);
  } catch (const Error& error) {
    message = error.what();
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  ASSERT_TRUE(message.starts_with(name + ": ")) << "not refused, or by another name: " << message;
  EXPECT_NE(message.find(text), std::string::npos) << message;
}

}  // namespace pascaline::testing
