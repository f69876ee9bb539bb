import { setTimeout as sleep } from 'node:timers/promises';
import type { KeyedHash } from '../../../domain/keyedHash.js';
import type { EventStore, Position } from '../../../ports/eventStore.js';
import type { KeyStore } from '../../../ports/keyStore.js';
import type { ReadStore } from '../../../ports/readStore.js';
import type { ReadModels } from '../../../projections/index.js';
import { SECRETS_CACHED_MS, type Subjects } from '../../../runtime/personal/index.js';
import { type ErasedPerson, eraseRecordsOf } from '../eraseRecords.js';
import { removeDerived } from './removeDerived.js';

/** Milliseconds after which every request that read a key before the fence has ended. */
const SETTLED_MS = SECRETS_CACHED_MS + 1_000;

export interface ErasureDeps {
  readonly events: EventStore;
  readonly keys: KeyStore;
  readonly subjects: Pick<Subjects, 'secretsForErasure'>;
  readonly hash: KeyedHash;
  /** Resolves when no process uses a previously fenced key any more. */
  readonly settle: () => Promise<void>;
  /** Removes what records hold of the person. @throws UnavailableError */
  readonly removeRecords: (person: ErasedPerson) => Promise<void>;
  /** Removes what read models held of the person up to the position. @throws UnavailableError */
  readonly removeDerived: (position: Position) => Promise<void>;
}

export interface ErasureSources extends Pick<ErasureDeps, 'events' | 'keys' | 'subjects' | 'hash'> {
  readonly store: ReadStore;
  readonly models: Pick<ReadModels, 'accounts'>;
}

export function erasureDeps({ store, models, ...sources }: ErasureSources): ErasureDeps {
  const { events, keys, subjects, hash } = sources;
  return {
    events,
    keys,
    subjects,
    hash,
    settle: async () => sleep(SETTLED_MS),
    removeRecords: async (person) => eraseRecordsOf({ records: store.records, hash }, person),
    removeDerived: async (position) => removeDerived(store, models, position),
  };
}
