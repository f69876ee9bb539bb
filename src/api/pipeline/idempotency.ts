/**
 * Idempotency keys (docs/decisions.md#idempotency-keys). A command's events are found in its stream by the command id.
 * Kept here, beside the log: that a request with the key is running, and the answers to repeat, refusals among them.
 */
import { createHash, randomUUID } from 'node:crypto';
import { CLOCK_SLACK_MS } from '../../lib/clock.js';
import type { KeyedHash } from '../../domain/keyedHash.js';
import type { Records } from '../../ports/readStore.js';
import type { Holder, Presence } from '../../runtime/coordination/presence.js';
import type { Principal } from '../auth/principal.js';
import { HttpError } from './errors.js';
import type { AccessRecord } from './route.js';

/** How long a request holds its key where its process is not known to be gone, ms. */
const HOLD_MS = 30_000;
const KEEP_MS = 24 * 3_600_000;
const MAX_STORED_BYTES = 256 * 1024;
const MAX_DEPTH = 32;
const KEY = /^[\x21-\x7e]{1,255}$/;

/**
 * An answer to repeat. `body` is JSON text; absent where it was too long, or must not be stored. Then the answer is
 * made again from the log, up to the first answer's `Gift-Position`.
 */
export interface StoredAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The access record of the answer, left again whenever the answer is repeated. */
  readonly accessRecord?: AccessRecord;
}

type Entry =
  | {
      readonly state: 'running';
      readonly bodyHash: string;
      readonly until: number;
      readonly first?: StoredAnswer;
      readonly holder?: Holder;
    }
  | { readonly state: 'done'; readonly bodyHash: string; readonly answer: StoredAnswer };

/** A key that is held by this request. */
export interface HeldKey {
  /** The first outcome, without its body: this request only makes the same answer again. */
  readonly first: StoredAnswer | undefined;
  /**
   * Keeps the first outcome for at least 24 hours; false where another request holds the key by now, since this process
   * was taken for gone. Then that request decides the outcome, by the log.
   */
  settle(answer: StoredAnswer): Promise<boolean>;
  /** Gives the key back: nothing was decided. */
  release(): Promise<void>;
}

/** The holders of keys: this process, and whether others still work on theirs. */
export interface KeyOwner {
  readonly self: Holder;
  /** Whether that process still works on a request with this command id, as far as is known. */
  isWorking(holder: Holder, commandId: string): boolean;
  /** This process starts to work on one. Returns what ends that. */
  start(commandId: string): () => void;
}

export function keyOwner({ self, isGone }: Pick<Presence, 'self' | 'isGone'>): KeyOwner {
  const working = new Map<string, symbol>();
  return {
    self,
    isWorking: (holder, commandId) => (holder.process === self.process ? working.has(commandId) : !isGone(holder)),
    start(commandId) {
      const turn = Symbol(commandId);
      working.set(commandId, turn);
      return () => {
        if (working.get(commandId) === turn) working.delete(commandId);
      };
    },
  };
}

/**
 * The checked header; `undefined` without one.
 * @throws HttpError `invalid_idempotency_key`
 */
export function idempotencyKey(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  if (!KEY.test(header)) throw new HttpError('invalid_idempotency_key');
  return header;
}

/** The command id of a request without a key. */
export const randomCommandId = (): string => randomUUID();

/**
 * The command id of a keyed request, scoped to user, client and route. `route`: method, and path with the gift
 * resolved.
 */
export function keyedCommandId(hash: KeyedHash, principal: Principal, route: string, key: string): string {
  const user = principal.kind === 'user' ? principal.user.id : '';
  const client = principal.kind === 'anonymous' ? '' : principal.clientId;
  return hash('command', JSON.stringify([user, client, route, key]));
}

/**
 * SHA-256 (base64url) of a body, whatever the order of its keys.
 * @throws HttpError `malformed_json` for one nested deeper than any schema
 */
export function bodyHashOf(body: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify(sorted(body, 0)) ?? '')
    .digest('base64url');
}

function sorted(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (depth > MAX_DEPTH) throw new HttpError('malformed_json');
  if (Array.isArray(value)) {
    const items: unknown[] = value.map((one) => sorted(one, depth + 1));
    // Fields end in a list, so lists that end in a list or in the mark are marked. All others are left as they are:
    // stored hashes must not change.
    const last: unknown = value.at(-1);
    return Array.isArray(last) || last === '[]' ? [...items, '[]'] : items;
  }
  // Sorts keys alone: with their values it takes twice as long, and any caller may send tens of thousands.
  const entries = Object.keys(value)
    .sort()
    .map((key) => [key, sorted((value as Readonly<Record<string, unknown>>)[key], depth + 1)]);
  return entries.concat([['', '{}']]);
}

/**
 * Takes the key, or gives the answer of the request that had it. A key whose process is gone is free at once. If that
 * process was only frozen, there is still one effect: the log finds the command by its id, and a refusal that can't be
 * kept is not given.
 * @param owner absent: a request that died holds its key for 30 s
 * @throws HttpError `request_in_progress`, `idempotency_key_reused`; UnavailableError
 */
export async function takeKey(
  records: Records,
  commandId: string,
  bodyHash: string,
  now: () => number = Date.now,
  owner?: KeyOwner,
): Promise<HeldKey | StoredAnswer> {
  const key = `idempotency:${commandId}`;
  for (;;) {
    const present = await records.get<Entry>(key);
    let first: StoredAnswer | undefined;
    if (present !== undefined) {
      const entry = present.value;
      if (entry.bodyHash !== bodyHash) throw new HttpError('idempotency_key_reused');
      if (entry.state === 'done') {
        if (entry.answer.body !== undefined) return entry.answer;
        first = entry.answer;
      } else {
        const left = entry.until - now();
        const working = entry.holder === undefined || owner === undefined || owner.isWorking(entry.holder, commandId);
        // More is left than was ever given: a clock that was set back must not hold the key for longer.
        if (working && left > 0 && left <= HOLD_MS + CLOCK_SLACK_MS)
          throw new HttpError('request_in_progress', {
            headers: { 'Retry-After': String(Math.min(5, Math.ceil(left / 1000))) },
          });
        first = entry.first;
      }
    }
    const running: Entry = {
      state: 'running',
      bodyHash,
      until: now() + HOLD_MS,
      ...(first === undefined ? {} : { first }),
      ...(owner === undefined ? {} : { holder: owner.self }),
    };
    const end = owner?.start(commandId) ?? (() => undefined);
    let version: number | undefined;
    try {
      version = await records.put(key, running, { expected: present?.version ?? 0, expiresAt: now() + KEEP_MS });
    } finally {
      if (version === undefined) end();
    }
    if (version !== undefined) return held(records, key, version, { bodyHash, first, now, end });
  }
}

interface Holding {
  readonly bodyHash: string;
  readonly first: StoredAnswer | undefined;
  readonly now: () => number;
  /** The request is over, also where that could not be stored. */
  end(): void;
}

function held(records: Records, key: string, version: number, { bodyHash, first, now, end }: Holding): HeldKey {
  const keep = async (answer: StoredAnswer): Promise<boolean> => {
    const entry: Entry = { state: 'done', bodyHash, answer };
    return (await records.put(key, entry, { expected: version, expiresAt: now() + KEEP_MS })) !== undefined;
  };
  return {
    first,
    async settle({ body, ...answer }) {
      const short = body !== undefined && Buffer.byteLength(body) <= MAX_STORED_BYTES;
      return keep(first ?? (short ? { ...answer, body } : answer)).finally(end);
    },
    async release() {
      await (first === undefined ? records.delete(key, version) : keep(first)).finally(end);
    },
  };
}
