#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>

#include "core/error.hpp"
#include "tests/cli/cli_model_fixture.hpp"
#include "tests/model/image/image_encoder.hpp"

namespace pascaline::testing {
namespace {

// Images as people give them, and texts as models give them.
class CliImageTest : public CliModelFixture {
 protected:
  static constexpr const char* kImage = "my cat's.png";

  CliImageTest() { write_bytes(folder_ / kImage, png_of(synthetic_image(16, 24))); }

  [[nodiscard]] std::string file(const std::string& name) const { return (folder_ / name).string(); }
  [[nodiscard]] ProgramResult generate(const std::string& image) const {
    return on_cpu("generate", {"--prompt", "x", "--greedy", "-n", "2", "--json", "--image", image});
  }
  [[nodiscard]] ProgramResult chat(const std::string& lines) const {
    return on_cpu("chat", {"--greedy", "-n", "2", "--json"}, lines);
  }
  static std::vector<nlohmann::json> answers(const ProgramResult& result) {
    std::vector<nlohmann::json> all;
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      all.push_back(nlohmann::json::parse(line));
    }
    return all;
  }
};

TEST_F(CliImageTest, WebpIsReadAndTransparencyIsToldOfOnce) {
  WebpSource source = webp_of(synthetic_image(16, 24));
  const auto answer = json_of(generate(file(kImage)));
  write_bytes(folder_ / "a.webp", encode_webp(source));
  const ProgramResult plain = generate(file("a.webp"));
  EXPECT_EQ(json_of(plain).at("tokens"), answer.at("tokens"));
  EXPECT_EQ(plain.error, "");
  source.pixels[3] = 0;
  write_bytes(folder_ / "b.webp", encode_webp(source));
  const ProgramResult transparent = generate(file("b.webp"));
  EXPECT_EQ(transparent.exit_code, 0);
  EXPECT_EQ(transparent.error, "pascaline: " + file("b.webp") + ": its transparent pixels are laid on white\n");
}

TEST_F(CliImageTest, NamesAreTakenAsTheyArePasted) {
  const auto tokens = json_of(generate(file(kImage))).at("prompt_tokens");
  std::string escaped = file(kImage);
  escaped.insert(escaped.find(' '), "\\");
  escaped.insert(escaped.find('\''), "\\");
  std::string url = file(kImage);
  url.replace(url.find(' '), 1, "%20");
  for (const std::string& name : {file(kImage), "\"" + file(kImage) + "\"", escaped, "file://" + url}) {
    const ProgramResult result = chat("/image " + name + "\nx\n");
    EXPECT_EQ(result.exit_code, 0) << result.out << result.error;
    ASSERT_EQ(answers(result).size(), 1U) << result.out;
    EXPECT_EQ(answers(result)[0].value("prompt_tokens", 0), tokens) << name;
  }
}

TEST_F(CliImageTest, AMessageAfterAnUnknownCommandIsNotAnswered) {
  for (const char* command : {"/Image", "/img", "/images", "/IMAGE"}) {
    const ProgramResult result = chat(std::string(command) + " " + kImage + "\nWhat is it?\nHello\n");
    EXPECT_EQ(result.exit_code, 1) << command;
    const auto all = answers(result);
    ASSERT_EQ(all.size(), 3U) << result.out;
    EXPECT_NE(all[0].value("error", "").find("unknown command"), std::string::npos);
    EXPECT_EQ(all[1].value("error", ""), "this message is not answered because the command before it is unknown");
    EXPECT_EQ(all[2].value("answer_tokens", 0), 2);
  }
}

TEST_F(CliImageTest, AMessageIsNotAnsweredWithoutItsImage) {
  const ProgramResult result = chat("/image nosuch.png\nWhat is it?\nHello\n");
  EXPECT_EQ(result.exit_code, 1);
  const auto all = answers(result);
  ASSERT_EQ(all.size(), 3U) << result.out;
  EXPECT_NE(all[0].value("error", "").find("nosuch.png"), std::string::npos);
  EXPECT_NE(all[1].value("error", "").find("this message is not answered"), std::string::npos);
  EXPECT_EQ(all[2].value("answer_tokens", 0), 2);
  const ProgramResult cleared = chat("/image nosuch.png\n/clear\nHello\n");
  EXPECT_EQ(cleared.exit_code, 0);
  EXPECT_EQ(answers(cleared).back().value("answer_tokens", 0), 2);
}

bool has_control_characters(const std::string& text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0 && c != '\n' && c != '\t'; });
}

// A new terminal, whose other end a program writes to.
class Terminal {
 public:
  Terminal() : screen_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    if (::grantpt(screen_) != 0 || ::unlockpt(screen_) != 0) {
      throw Error("cannot open a terminal");
    }
    keyboard_ = ::open(::ptsname(screen_), O_RDWR | O_NOCTTY);  // so that it stays when the program ends
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    ::close(keyboard_);
    ::close(screen_);
  }
  [[nodiscard]] std::string name() const { return ::ptsname(screen_); }
  // What was written to it, with the ends of lines as they were written.
  [[nodiscard]] std::string shown() const {
    ::fcntl(screen_, F_SETFL, O_NONBLOCK);
    std::string text(1 << 16, '\0');
    const ssize_t count = ::read(screen_, text.data(), text.size());
    text.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
    for (std::size_t at = 0; (at = text.find("\r\n", at)) != std::string::npos;) {
      text.erase(at, 1);
    }
    return text;
  }

 private:
  int screen_;
  int keyboard_ = -1;
};

TEST_F(CliImageTest, ControlCharactersOfAnAnswerDoNotReachATerminal) {
  // Any of the tokens, among which are those of single bytes.
  const std::vector<std::string> words{
      "generate", "--model",       model_, "--device", "cpu", "--prompt", "x", "--context", "512", "-n",
      "300",      "--temperature", "1000", "--top-k",  "0",   "--top-p",  "1", "--seed",    "1"};
  const ProgramResult piped = run_program(folder_.path(), words);
  ASSERT_EQ(piped.exit_code, 0) << piped.error;
  ASSERT_TRUE(has_control_characters(piped.out)) << "there is nothing to replace";
  const Terminal terminal;
  std::filesystem::remove(folder_ / "stdout");
  std::filesystem::create_symlink(terminal.name(), folder_ / "stdout");
  int status = 0;
  ::waitpid(start_program(folder_.path(), words), &status, 0);
  EXPECT_EQ(status, 0);
  const std::string shown = terminal.shown();
  EXPECT_GT(shown.size(), 100U);
  EXPECT_FALSE(has_control_characters(shown));
  EXPECT_NE(shown.find("\ufffd"), std::string::npos);
}

TEST_F(CliImageTest, AHeadThatIsNotTheEmbeddingIsToldOfAndKept) {
  const std::filesystem::path given = std::filesystem::path(PASCALINE_CHECKPOINT_DATA) / "qwen3_untied";
  std::filesystem::remove_all(model_);
  std::filesystem::copy(given, model_);
  const std::string config = read_file(model_ + "/config.json");
  const auto contradict = [&](const char* key) {
    auto root = nlohmann::json::parse(config);
    root[key] = true;
    write_bytes(model_ + "/config.json", root.dump());
  };
  contradict("tie_word_embeddings");
  const std::string reference = (given / "reference.safetensors").string();
  const std::string warning = "pascaline: warning: " + model_ + "/config.json: tie_word_embeddings is true, but";
  const auto expect_warned = [&](const ProgramResult& result, bool is_warned) {
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_EQ(result.error.find(warning) != std::string::npos, is_warned) << result.error;
  };
  expect_warned(on_cpu("validate", {"--reference", reference, "--weights", "float32"}), true);
  const auto check = [&](const std::string& made) {
    const ProgramResult result =
        run_program(folder_.path(), {"validate", "--model", made, "--reference", reference, "--weights", "float32",
                                     "--device", "cpu", "--context", "64"});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_EQ(result.error.find("tie_word_embeddings"), std::string::npos) << result.error;
  };
  expect_warned(run_program(folder_.path(),
                            {"quantize", "--model", model_, "-o", file("made"), "--weights", "float32", "--quiet"}),
                true);
  check(file("made"));
  expect_warned(run_program(folder_.path(), {"convert", model_, file("made.gguf"), "--quiet"}), true);
  check(file("made.gguf"));
}

}  // namespace
}  // namespace pascaline::testing
