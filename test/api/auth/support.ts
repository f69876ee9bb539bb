/** What the tests of authentication stand on: records and accounts in memory, and a clock that stands still. */
import { type KeyedHash, keyedHash } from '../../../src/domain/keyedHash.js';
import { normaliseUsername } from '../../../src/lib/precis.js';
import type { Records, StoredRecord } from '../../../src/ports/readStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import type { AccountDocument, ClientDocument, UserDocument } from '../../../src/projections/accounts.js';
import type { ReadModel } from '../../../src/runtime/readmodels/readModel.js';
import { hashPassword } from '../../../src/lib/passwordHash.js';

export const hash: KeyedHash = keyedHash(Buffer.from('a key of tests, of thirty-two bytes and more'));
export const TOKEN_KEY = 'a token key of tests with more than thirty-two bytes';

/** A clock that the test moves. */
export interface Clock {
  ms: number;
  readonly now: () => number;
}

export function clockAt(ms = Date.parse('2026-03-01T12:00:00Z')): Clock {
  const clock = { ms, now: () => clock.ms };
  return clock;
}

/**
 * Records in memory. Each call takes a turn of the event loop, so that what runs side by side really does. `down`:
 * every call fails.
 */
export interface MemoryRecords extends Records {
  down: boolean;
  readonly calls: { get: number; put: number };
  keys(): string[];
  text(): string;
}

export function memoryRecords(now: () => number): MemoryRecords {
  const stored = new Map<string, StoredRecord>();
  const alive = (key: string): StoredRecord | undefined => {
    const record = stored.get(key);
    return record !== undefined && (record.expiresAt === undefined || record.expiresAt > now()) ? record : undefined;
  };
  const turn = async (): Promise<void> => {
    await new Promise((resolve) => setImmediate(resolve));
    if (records.down) throw new UnavailableError('the records are down');
  };
  const records: MemoryRecords = {
    down: false,
    calls: { get: 0, put: 0 },
    keys: () => [...stored.keys()].filter((key) => alive(key) !== undefined),
    text: () => JSON.stringify([...stored]),
    async get<V>(key: string) {
      records.calls.get += 1;
      await turn();
      return structuredClone(alive(key)) as StoredRecord<V> | undefined;
    },
    async put(key, value, options = {}) {
      records.calls.put += 1;
      await turn();
      if (key.length > 200) throw new Error(`a key of ${key.length} characters`);
      const version = alive(key)?.version ?? 0;
      if (options.expected !== undefined && options.expected !== version) return undefined;
      stored.set(key, {
        key,
        value: structuredClone(value),
        version: version + 1,
        ...(options.expiresAt === undefined ? {} : { expiresAt: options.expiresAt }),
      });
      return version + 1;
    },
    async delete(key, expected) {
      await turn();
      const record = alive(key);
      if (record === undefined || (expected !== undefined && expected !== record.version)) return false;
      return stored.delete(key);
    },
    async list<V>(prefix: string) {
      await turn();
      return records
        .keys()
        .filter((key) => key.startsWith(prefix))
        .sort()
        .map((key) => alive(key) as StoredRecord<V>);
    },
  };
  return records;
}

/** The read model of accounts, in memory. */
export interface MemoryAccounts extends ReadModel<AccountDocument> {
  readonly documents: Map<string, AccountDocument>;
  readonly requested: string[];
  down: boolean;
  /** Changes a user or a client. */
  change(id: string, change: Partial<UserDocument> & Partial<ClientDocument>): void;
}

function memoryAccounts(): MemoryAccounts {
  const documents = new Map<string, AccountDocument>();
  const accounts: MemoryAccounts = {
    documents,
    requested: [],
    down: false,
    change(id, change) {
      documents.set(id, { ...(documents.get(id) as AccountDocument), ...change } as AccountDocument);
    },
    async get(id) {
      accounts.requested.push(id);
      await new Promise((resolve) => setImmediate(resolve));
      if (accounts.down) throw new UnavailableError('the read model is down');
      return documents.get(id);
    },
    async getMany(ids) {
      return Promise.all(ids.map(async (id) => accounts.get(id)));
    },
    find: async () => [],
    outOfService: async () => [],
    edition: () => '1/0',
    reached: async () => true,
    folded: async () => undefined,
  };
  return accounts;
}

export const PASSWORD = 'correct horse';
export const SECRET = 'app+secret %';

const hashes = new Map<string, Promise<string>>();
/** Hashing takes a while: once for each password. */
async function hashOf(password: string): Promise<string> {
  const known = hashes.get(password) ?? hashPassword(password);
  hashes.set(password, known);
  return known;
}

export function aUser(id: string, passwordHash: string, change: Partial<UserDocument> = {}): UserDocument {
  return {
    entry: 'user',
    id,
    username: id,
    password_hash: passwordHash,
    name: id,
    locale: null,
    phone_number: null,
    device_tokens: [],
    active: true,
    roles: [],
    merchant_id: null,
    permissions: [],
    credential: 1,
    ...change,
  };
}

export function aClient(id: string, secretHash: string, change: Partial<ClientDocument> = {}): ClientDocument {
  return {
    entry: 'client',
    id,
    secret_hash: secretHash,
    name: id,
    active: true,
    users: null,
    staff: null,
    credential: 1,
    ...change,
  };
}

/**
 * Users `ada`, `bob` and the inactive `eve`, clients `app`, `other` and `till` (which may log in bob only), all with
 * the same password and secret.
 */
export async function someAccounts(): Promise<MemoryAccounts> {
  const accounts = memoryAccounts();
  const [password, secret] = await Promise.all([hashOf(PASSWORD), hashOf(SECRET)]);
  for (const [id, change] of [
    ['ada', {}],
    ['bob', {}],
    ['eve', { active: false }],
  ] as const) {
    accounts.documents.set(`user-${id}`, aUser(id, password, change));
    accounts.documents.set(`username-${hash('username', normaliseUsername(id))}`, { entry: 'username', user_id: id });
  }
  for (const [id, change] of [
    ['app', {}],
    ['other', {}],
    ['till', { users: ['bob'] }],
    ['gone', { active: false }],
  ] as const) {
    accounts.documents.set(`client-${id}`, aClient(id, secret, change));
  }
  return accounts;
}
