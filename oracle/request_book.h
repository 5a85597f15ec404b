// What the oracle knows about each request: its tokens, the contents that they make, and how far it
// has come.
//
// Fed by events only. Chains are kept up to the last whole page. Tokens of a request that has ended
// are dropped, chains too, once nothing of it is in flight any more (retire()).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/events.h"
#include "core/geometry.h"
#include "oracle/content.h"

namespace lockstep::oracle {

enum class RequestPhase { waiting, running, finished, cancelled, refused };

constexpr bool has_ended(RequestPhase phase) {
  return phase != RequestPhase::waiting && phase != RequestPhase::running;
}

struct RequestRecord {
  RequestId id;
  std::optional<std::string> extra_key;
  ContentId root = kNoContent;
  std::vector<TokenId> tokens;   // prompt, then what it has generated
  std::vector<ContentId> chain;  // chain[i]: the prefix that ends with page i
  Tokens prompt;
  Tokens decode;  // asked for at the first submission
  Tokens fed;     // tokens whose rows exist for it: restored or computed and accepted
  RequestPhase phase = RequestPhase::waiting;

  Tokens length() const { return Tokens{static_cast<std::int64_t>(tokens.size())}; }
  Tokens generated() const { return length() - prompt; }
};

class RequestBook {
 public:
  RequestBook(ContentTable& contents, Geometry geometry, std::string model_fingerprint,
              std::string layout_fingerprint);

  void apply(const Event& event);
  // Another engine: page size, model or layout may differ. Unfinished requests are submitted again.
  void reconfigure(Geometry geometry, std::string model_fingerprint,
                   std::string layout_fingerprint);
  // Frees the tokens of an ended request.
  void retire(RequestId request);

  // Null for a request that was never submitted.
  const RequestRecord* find(RequestId request) const;
  const std::map<RequestId, RequestRecord>& all() const { return records_; }
  // Requests other than `request` that have been committed and not ended.
  bool others_run(RequestId request) const;
  const Geometry& geometry() const { return geometry_; }
  // The prefix of `request` that ends at `boundary`, a page multiple; none where the request is
  // shorter than that.
  ContentId content_at(const RequestRecord& request, Tokens boundary) const;

 private:
  void submit(const Event& event, const RequestSubmitted& submitted);
  void set_phase(RequestRecord& record, RequestPhase phase);
  void extend_chain(RequestRecord& record);

  ContentTable& contents_;
  Geometry geometry_;
  std::string model_fingerprint_;
  std::string layout_fingerprint_;
  std::map<RequestId, RequestRecord> records_;
  std::set<RequestId> running_;
};

}  // namespace lockstep::oracle
