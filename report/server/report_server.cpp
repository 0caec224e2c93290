#include "report/server/report_server.hpp"

#include <fmt/format.h>
#include <httplib.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <string_view>

#include "core/error.hpp"
#include "report/html.hpp"
#include "report/server/served_report.hpp"
#include "report/text.hpp"

namespace pascaline {
namespace {

// Each connection holds a thread while it is open: many wait, few work.
constexpr std::size_t kThreads = 64;
constexpr int kMaxWaitSeconds = 3;  // for a request on a connection, and for its next

// Names ignore case, and may end with the root's dot.
std::string plain_name(std::string_view host) {
  std::string name(host);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (name.ends_with('.')) {
    name.pop_back();
  }
  return name;
}

// An address or a name as `plain_name` gives it, an address of IPv6 without brackets.
bool names_loopback(const std::string& name) {
  return name == "localhost" || name == "::1" ||
         (name.starts_with("127.") && name.find_first_not_of("0123456789.") == std::string::npos);
}

bool is_loopback(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24U == 127;
  }
  const in6_addr& wide = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return address.sa_family == AF_INET6 &&
         (IN6_IS_ADDR_LOOPBACK(&wide) || (IN6_IS_ADDR_V4MAPPED(&wide) && wide.s6_addr[12] == 127));
}

// Whether only this machine reaches a server on `host`, however its address is written or named.
bool is_on_loopback(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) {
    return names_loopback(plain_name(host));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  bool all = true;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    all = all && is_loopback(*one->ai_addr);
  }
  return all;
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

// Forgets the parts that a request asks for. The report is made again with every trial, so parts of it are of no use,
// and a request for hundreds of parts that overlap would be answered with hundreds of reports.
void send_whole(const httplib::Request& request) {
  const_cast<httplib::Request&>(request).ranges.clear();  // the library reads them only after this, and has no switch
}

}  // namespace

class ReportServer::Impl {
 public:
  explicit Impl(const ServeOptions& options) : report_(options.database, options.report) {
    (void)report_.get();  // what is wrong with the database is known before anyone asks
    server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    server_.set_read_timeout(kMaxWaitSeconds, 0);
    server_.set_keep_alive_timeout(kMaxWaitSeconds);
    // Without SO_REUSEPORT, which would let two servers share a port.
    server_.set_socket_options([](socket_t socket) {
      const int yes = 1;
      (void)setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    server_.set_default_headers({{"X-Content-Type-Options", "nosniff"},
                                 {"Referrer-Policy", "no-referrer"},
                                 {"Cache-Control", "no-cache"},
                                 {"Accept-Ranges", "none"},
                                 {"Content-Security-Policy", html_report_policy(true)}});
    server_.set_error_handler([](const httplib::Request&, httplib::Response& response) {
      if (response.body.empty()) {
        answer_text(
            response, response.status,
            response.status == 404 ? "There is nothing here; the report is at /." : "This is not a valid request.");
      }
    });
    look_at_requests_first(is_on_loopback(options.host) ? plain_name(options.host) : std::string());
    answer_page();
    answer_document();
    port_ = options.port == 0                                  ? server_.bind_to_any_port(options.host)
            : server_.bind_to_port(options.host, options.port) ? options.port
                                                               : -1;
    if (port_ < 0) {
      throw Error(
          fmt::format("cannot listen on {} port {}: the address is not one of this machine, or the port is in use; "
                      "choose others with --host and --port",
                      options.host, options.port));
    }
  }

  [[nodiscard]] int port() const noexcept { return port_; }
  void run() { server_.listen_after_bind(); }
  void stop() { server_.stop(); }

 private:
  // Of a server on loopback `own` is the name it was told to listen on: so that no other site's page can read the
  // report through a name of its own, requests must give that or one of loopback's.
  void look_at_requests_first(const std::string& own) {
    server_.set_pre_routing_handler([own](const httplib::Request& request, httplib::Response& response) {
      send_whole(request);
      const std::string header = request.get_header_value("Host");
      const std::string name = plain_name(host_name(header));
      if (own.empty() || names_loopback(name) || name == own) {
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
