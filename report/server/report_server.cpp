#include "report/server/report_server.hpp"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "core/error.hpp"
#include "report/html.hpp"
#include "report/server/served_report.hpp"
#include "report/text.hpp"

namespace pascaline {
namespace {

// Each connection holds a thread while it is open: many wait, few work.
constexpr std::size_t kThreads = 64;
constexpr int kMostWaitSeconds = 3;  // for a request on a connection, and for its next

// An address or a name, an address of IPv6 without brackets. Names ignore case, and may end with the root's dot.
bool is_loopback(std::string_view host) {
  std::string name(host);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (name.ends_with('.')) {
    name.pop_back();
  }
  return name == "localhost" || name == "::1" ||
         (name.starts_with("127.") && name.find_first_not_of("0123456789.") == std::string::npos);
}

// What the Host of a request names, without its port; there an address of IPv6 is in brackets.
std::string_view host_name(std::string_view header) {
  if (header.starts_with('[')) {
    const std::size_t end = header.find(']');
    const std::string_view port = header.substr(std::min(end, header.size() - 1) + 1);
    return end == std::string_view::npos || !(port.empty() || port.front() == ':') ? "" : header.substr(1, end - 1);
  }
  return header.substr(0, header.find(':'));
}

void answer_text(httplib::Response& response, int status, const std::string& text) {
  response.status = status;
  response.set_content(text + "\n", "text/plain; charset=utf-8");
}

}  // namespace

class ReportServer::Impl {
 public:
  explicit Impl(const ServeOptions& options) : report_(options.database, options.report) {
    (void)report_.get();  // what is wrong with the database is known before anyone asks
    server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    server_.set_read_timeout(kMostWaitSeconds, 0);
    server_.set_keep_alive_timeout(kMostWaitSeconds);
    // Without SO_REUSEPORT, which would let two servers share a port.
    server_.set_socket_options([](socket_t socket) {
      const int yes = 1;
      (void)setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    server_.set_default_headers({{"X-Content-Type-Options", "nosniff"},
                                 {"Referrer-Policy", "no-referrer"},
                                 {"Cache-Control", "no-cache"},
                                 {"Content-Security-Policy", html_report_policy(true)}});
    if (is_loopback(options.host)) {
      refuse_other_names();
    }
    answer_page();
    answer_document();
    port_ = options.port == 0                                  ? server_.bind_to_any_port(options.host)
            : server_.bind_to_port(options.host, options.port) ? options.port
                                                               : -1;
    if (port_ < 0) {
      throw Error(
          fmt::format("cannot listen on {} port {}: the address is not this machine's, or the port is taken; "
                      "choose others with --host and --port",
                      options.host, options.port));
    }
  }

  [[nodiscard]] int port() const noexcept { return port_; }
  void run() { server_.listen_after_bind(); }
  void stop() { server_.stop(); }

 private:
  void refuse_other_names() {
    server_.set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {
      const std::string header = request.get_header_value("Host");
      if (is_loopback(host_name(header))) {
        return httplib::Server::HandlerResponse::Unhandled;
      }
      answer_text(response, 403, "This report is served on this machine only: open it as http://127.0.0.1");
      return httplib::Server::HandlerResponse::Handled;
    });
  }

  // Calls `use` with the report; what is wrong with the database is told instead.
  template <typename Use>
  void with_report(httplib::Response& response, Use use) {
    try {
      use(*report_.get());
    } catch (const Error& error) {
      answer_text(response, 503, clean_line(error.what()));
    }
  }

  void answer_page() {
    server_.Get("/", [this](const httplib::Request&, httplib::Response& response) {
      with_report(response,
                  [&](const ServedReport::Made& made) { response.set_content(made.page, "text/html; charset=utf-8"); });
    });
  }

  void answer_document() {
    server_.Get("/document.json", [this](const httplib::Request& request, httplib::Response& response) {
      with_report(response, [&](const ServedReport::Made& made) {
        response.set_header("ETag", made.tag);
        if (request.get_header_value("If-None-Match") == made.tag) {
          response.status = 304;
        } else {
          response.set_content(made.json, "application/json");
        }
      });
    });
  }

  ServedReport report_;
  httplib::Server server_;
  int port_ = -1;
};

ReportServer::ReportServer(const ServeOptions& options) : impl_(std::make_unique<Impl>(options)) {}
ReportServer::~ReportServer() = default;
int ReportServer::port() const noexcept { return impl_->port(); }
void ReportServer::run() { impl_->run(); }
void ReportServer::stop() { impl_->stop(); }

}  // namespace pascaline
