#include "oracle/store_checks.h"

#include <algorithm>

namespace lockstep::oracle {

void StoreChecks::before(const Event& event) {
  if (const auto* flagged = std::get_if<StoredFlagSet>(&event.body)) {
    check_accepted(event, *flagged);
    check_parent(event, *flagged);
  } else if (const auto* finished = std::get_if<LoadFinished>(&event.body)) {
    if (finished->good) check_read_back(event, *finished);
  }
}

void StoreChecks::check_accepted(const Event& event, const StoredFlagSet& flagged) {
  const LedgerNode* node = scene_.ledger(event.rank).node(flagged.node);
  if (node == nullptr || node->tip == kNoContent) return;
  // A state hangs on the node's last page; its range may be empty.
  const bool is_state = flagged.component == Component::mamba;
  const Pages begin = is_state ? node->end - Pages{1} : flagged.pages.begin;
  const Pages end = is_state ? node->end : std::min(flagged.pages.end, node->end);
  ContentId content = scene_.contents.prefix(node->tip, end);
  for (Pages page = end; page > begin;
       page -= Pages{1}, content = scene_.contents.parent(content)) {
    for (std::uint32_t rank = 0; rank < scene_.ledgers.size(); ++rank) {
      if (scene_.store.was_accepted(RankId{rank}, flagged.component, content)) continue;
      scene_.findings.report("S1", event.rank, event.request,
                             "the store of rank " + std::to_string(rank) + " accepted " +
                                 std::string(name(flagged.component)) + " page " +
                                 std::to_string(page.value() - 1) + " before " +
                                 text(flagged.node) + " is flagged",
                             "it never did");
      return;
    }
  }
}

void StoreChecks::check_parent(const Event& event, const StoredFlagSet& flagged) {
  if (flagged.component != Component::full) return;
  const RankLedger& ledger = scene_.ledger(event.rank);
  const LedgerNode* node = ledger.node(flagged.node);
  const LedgerNode* parent = node == nullptr ? nullptr : ledger.node(node->parent);
  if (parent == nullptr || parent->is_root || parent->full_stored) return;
  scene_.findings.report("S2", event.rank, event.request,
                         "flagged ancestors of " + text(flagged.node),
                         "its parent, " + text(node->parent) + ", is not flagged");
}

void StoreChecks::check_read_back(const Event& event, const LoadFinished& finished) {
  const auto load = scene_.ledger(event.rank).loads().find(finished.load);
  if (load == scene_.ledger(event.rank).loads().end()) return;
  for (const TransferPart& part : load->second.parts) {
    for (std::size_t i = 0; i < part.rows.size(); ++i) {
      if (part.contents[i] == kNoContent) continue;
      const PageHash& hash = scene_.contents.hash(part.contents[i]);
      const StoredObject* object = scene_.store.object(event.rank, part.component, hash);
      if (object == nullptr || object->digest == 0)
        continue;  // evicted since, or put before the oracle watched
      const std::uint64_t digest =
          row_digest(scene_.inspector(event.rank).row_bytes(part.component, part.rows[i]));
      if (digest == object->digest) continue;
      scene_.findings.report(
          "S3", event.rank, load->second.request,
          "the bytes that were put, digest " + std::to_string(object->digest),
          text(part.component, part.rows[i]) + " has digest " + std::to_string(digest),
          {.row = part.rows[i]});
    }
  }
}

}  // namespace lockstep::oracle
