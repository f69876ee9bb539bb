import { personId } from '../../../domain/erasure.js';
import type { ErasureOutcome } from './erasePerson.js';

/** Backups of the key store are kept as long at most (docs/decisions.md#key-store). */
const BACKUPS_KEPT_MS = 30 * 86_400_000;

/** Times are ISO 8601, UTC. */
export interface ErasureView {
  readonly id: string;
  readonly person: string;
  readonly erased_at: string;
  readonly complete_at: string;
  readonly already: boolean;
  readonly unread: readonly string[];
}

export function erasureView({ erasure, already, unread }: ErasureOutcome): ErasureView {
  const erasedAt = erasure.done_at ?? erasure.at;
  return {
    id: erasure.id,
    person: personId(erasure.person),
    erased_at: erasedAt,
    complete_at: new Date(Date.parse(erasedAt) + BACKUPS_KEPT_MS).toISOString(),
    already,
    unread,
  };
}
