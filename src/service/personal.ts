/** Personal data: the key store that the settings choose, and the subjects in it. */
import type { Logger } from 'pino';
import { openEmbeddedKeyStore } from '../adapters/embedded/keyStore/keyStore.js';
import type { EmbeddedStoreOptions } from '../adapters/embedded/options.js';
import { type KeyedHash, keyedHash } from '../domain/keyedHash.js';
import { keepsText, lookupOf, PERSONAL_FIELDS, type SubjectKind } from '../domain/personalFields.js';
import { randomBytes } from '../lib/world.js';
import type { EventStore } from '../ports/eventStore.js';
import type { KeyStore } from '../ports/keyStore.js';
import { UnavailableError } from '../ports/unavailable.js';
import {
  encryptedEvents,
  type MasterKeys,
  masterKeys,
  openSubjects,
  type PersonalRules,
  type Subjects,
  UnknownMasterKeyError,
} from '../runtime/personal/index.js';
import type { Config } from './config.js';
import { findHashKey, findMasterKeys, loadKeys } from './keys.js';

const RULES: PersonalRules = new Map(Object.entries(PERSONAL_FIELDS));
const DATA_KEY_BYTES = 32;

export interface PersonalSettings
  extends
    Pick<Config, 'dataDir' | 'eventStoreUrl' | 'keysUrl' | 'tokenKeys' | 'hashKey' | 'masterKeys'>,
    Pick<EmbeddedStoreOptions, 'longLived' | 'openElsewhere'> {}

/** The key store, the master keys and the subjects, which together open personal data. */
interface Personal {
  readonly keys: KeyStore;
  readonly master: MasterKeys;
  readonly subjects: Subjects;
}

/** A log with its personal data. */
export interface Log extends Personal {
  /** Events with their personal fields in the clear. `close` closes the key store, too. */
  readonly events: EventStore;
  /** The log that `events` reads, with events as stored: neither decrypted nor upcast. Closed with `events`. */
  readonly stored: EventStore;
}

/**
 * Opens the key store when it is first needed: a program that only reads a log without personal data creates none.
 * Keys of the installation are generated when a subject is first added.
 * @param given a key store that is open already, in place of the one that the settings choose
 */
export function openPersonal(settings: PersonalSettings, logger?: Logger, given?: KeyStore): Personal {
  const keys =
    given ?? openedWhenNeeded(isEmbedded(settings) ? 'embedded' : 'mongodb', () => openKeyStore(settings, logger));
  const master = masterOf(settings);
  const hash = once((): KeyedHash => keyedHash(findHashKey(settings) ?? loadKeys(settings).hashKey));
  const subjects = openSubjects({
    store: keys,
    master,
    lookupOf: (name) => lookupOf(hash(), name),
    secretFor: ({ kind, text }) => (keepsText(kind as SubjectKind) ? Buffer.from(text) : randomBytes(DATA_KEY_BYTES)),
  });
  return { keys, master, subjects };
}

/** A stored log with its personal data in the clear. `given`: as for `openPersonal`. */
export function withPersonalData(
  stored: EventStore,
  settings: PersonalSettings,
  logger?: Logger,
  given?: KeyStore,
): Log {
  const personal = openPersonal(settings, logger, given);
  const events = encryptedEvents(stored, personal.subjects, RULES);
  return {
    ...personal,
    stored,
    events: {
      ...events,
      async close() {
        await events.close();
        await personal.keys.close();
      },
    },
  };
}

/** The master keys. Sealing generates a missing key; opening never does, since sealed data has a key already. */
function masterOf(settings: PersonalSettings): MasterKeys {
  const making = once(() => masterKeys(findMasterKeys(settings) ?? loadKeys(settings).masterKeys));
  const found = once(() => {
    const texts = findMasterKeys(settings);
    if (texts === undefined) throw new UnknownMasterKeyError('the key that the key store was made with is missing');
    return masterKeys(texts);
  });
  return {
    seal: (...args) => making().seal(...args),
    open: (...args) => found().open(...args),
    isCurrent: (sealed) => found().isCurrent(sealed),
  };
}

export const isEmbedded = ({ keysUrl }: Pick<PersonalSettings, 'keysUrl'>): boolean =>
  keysUrl === undefined || keysUrl === 'embedded';

async function openKeyStore(settings: PersonalSettings, logger: Logger | undefined): Promise<KeyStore> {
  const { dataDir: dir, longLived = false, openElsewhere = false } = settings;
  if (isEmbedded(settings)) return openEmbeddedKeyStore({ dir, longLived, openElsewhere });
  return (await import('../adapters/mongodb/keyStore.js')).openMongoKeyStore({ url: settings.keysUrl ?? '', logger });
}

function openedWhenNeeded(engine: string, open: () => Promise<KeyStore>): KeyStore {
  let opening: Promise<KeyStore> | undefined;
  let closed = false;
  const opened = async (): Promise<KeyStore> => {
    if (closed) throw new UnavailableError('the key store is closed');
    opening ??= open();
    return opening.catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
  };
  return {
    engine,
    byId: async (ids) => (ids.length === 0 ? new Map() : (await opened()).byId(ids)),
    byLookup: async (lookups) => (lookups.length === 0 ? new Map() : (await opened()).byLookup(lookups)),
    add: async (rows) => (await opened()).add(rows),
    rewrap: async (rows) => (await opened()).rewrap(rows),
    page: async (after, limit) => (await opened()).page(after, limit),
    fence: async (ids) => (await opened()).fence(ids),
    unfence: async (ids) => (await opened()).unfence(ids),
    remove: async (ids) => (await opened()).remove(ids),
    removed: async (ids) => (ids.length === 0 ? new Set() : (await opened()).removed(ids)),
    putErasure: async (row) => (await opened()).putErasure(row),
    erasures: async (after, limit) => (await opened()).erasures(after, limit),
    ping: async () => (await opened()).ping(),
    async close() {
      closed = true;
      await (await opening?.catch(() => undefined))?.close();
    },
  };
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}
