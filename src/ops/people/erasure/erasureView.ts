import { personId } from '../../../domain/erasure.js';
import type { ErasureOutcome } from './erasePerson.js';
import { type Erasure, isRequest } from './erasureRecord.js';

/** Longest time in ms that backups of the key store are retained (docs/personal-data.md#key-store). */
const BACKUPS_KEPT_MS = 30 * 86_400_000;

/** An erasure that was carried out. Times are ISO 8601, UTC. */
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

/** An erasure from its request on. Times are ISO 8601, UTC. */
export interface ErasureRequestView {
  readonly id: string;
  readonly person: string;
  readonly status: 'requested' | 'started' | 'withdrawn' | 'erased';
  readonly reason: string;
  readonly requested_by: string | null;
  readonly requested_at: string;
  /** Time when the request is carried out; null where it was not requested over HTTP. */
  readonly due_at: string | null;
  readonly erased_at: string | null;
}

export function erasureRequestView(erasure: Erasure): ErasureRequestView {
  const { id, person, reason, by, at, due_at, done_at } = erasure;
  return {
    id,
    person: personId(person),
    status: statusOf(erasure),
    reason,
    requested_by: by.user ?? null,
    requested_at: at,
    due_at: due_at ?? null,
    erased_at: done_at ?? null,
  };
}

function statusOf(erasure: Erasure): ErasureRequestView['status'] {
  if (erasure.withdrawn_at !== undefined) return 'withdrawn';
  if (erasure.done_at !== undefined) return 'erased';
  return isRequest(erasure) ? 'requested' : 'started';
}
