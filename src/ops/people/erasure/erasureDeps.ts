import type { KeyedHash } from '../../../domain/keyedHash.js';
import type { EventStore } from '../../../ports/eventStore.js';
import type { KeyStore } from '../../../ports/keyStore.js';
import type { ReadStore } from '../../../ports/readStore.js';
import type { ReadModels } from '../../../projections/index.js';
import type { Subjects } from '../../../runtime/personal/subjects.js';
import { eraseRecordsOf } from '../eraseRecords.js';
import type { ErasureDeps } from './erasePerson.js';
import { removeDerived } from './removeDerived.js';

export interface ErasureSources {
  readonly events: EventStore;
  readonly fencedEvents: Pick<EventStore, 'read'>;
  readonly keys: KeyStore;
  readonly subjects: Subjects;
  readonly hash: KeyedHash;
  readonly store: ReadStore;
  readonly models: Pick<ReadModels, 'accounts'>;
}

export function erasureDeps(sources: ErasureSources): ErasureDeps {
  const { events, fencedEvents, keys, subjects, hash, store, models } = sources;
  return {
    events,
    fencedEvents,
    keys,
    subjects,
    hash,
    removeRecords: (person) => eraseRecordsOf({ records: store.records, hash }, person),
    removeDerived: (position) => removeDerived(models, position),
  };
}
