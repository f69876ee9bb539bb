/**
 * Idempotency keys (docs/api/conventions.md#idempotency-keys). A command's events are found in its stream by the
 * command id. The records hold the rest: running requests, and answers to repeat, refusals among them.
 */
import { createHash } from 'node:crypto';
import { CLOCK_SLACK_MS, clockMs } from '../../lib/clock.js';
import type { KeyedHash } from '../../domain/keyedHash.js';
import { ANSWERS } from '../../domain/recordKeys.js';
import { randomUUID } from '../../lib/world.js';
import type { Records } from '../../ports/readStore.js';
import type { Holder, Presence } from '../../runtime/coordination/index.js';
import type { Principal } from './principal.js';
import { HttpError } from './errors.js';
import type { AccessRecord, RouteDescription } from './route.js';

/** How long a request holds its key unless its process is known to be gone, ms. */
const HOLD_MS = 30_000;
const KEEP_MS = 24 * 3_600_000;
const MAX_STORED_BYTES = 256 * 1024;
const KEY = /^[\x21-\x7e]{1,255}$/;
const QUOTED = /^"(.*)"$/s;

/**
 * An answer to repeat. `body` is JSON text; absent where it is too long or must not be stored: the answer is then made
 * again from the log, up to the first answer's `Gift-Position`.
 */
export interface StoredAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Access record that is appended again whenever the answer is repeated. */
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

export interface HeldKey {
  /** The first outcome without its body, which this request makes again. */
  readonly first: StoredAnswer | undefined;
  /** Whether an earlier request held the key, and may have carried the command out. */
  readonly repeats: boolean;
  /**
   * Stores the first outcome for at least 24 hours. False: another request took over the key, because this process
   * seemed dead; that request's outcome counts, by the log.
   */
  settle(answer: StoredAnswer): Promise<boolean>;
  /** Frees the key without an outcome. */
  release(): Promise<void>;
}

export interface KeyOwner {
  readonly self: Holder;
  /** Whether the holder still works on the command, as far as this process knows. */
  isWorking(holder: Holder, commandId: string): boolean;
  /** Marks a command as in progress in this process; the returned function ends that. */
  start(commandId: string): () => void;
}

export function keyOwner(presence: Pick<Presence, 'self' | 'isGone'>): KeyOwner {
  /** Requests in this process that try to take a command's key, or hold it. */
  const working = new Map<string, Set<symbol>>();
  return {
    get self() {
      return presence.self;
    },
    isWorking: (holder, commandId) =>
      holder.process === presence.self.process ? working.has(commandId) : !presence.isGone(holder),
    start(commandId) {
      const request = Symbol(commandId);
      const requests = working.get(commandId) ?? new Set();
      working.set(commandId, requests.add(request));
      return () => {
        requests.delete(request);
        if (requests.size === 0 && working.get(commandId) === requests) working.delete(commandId);
      };
    },
  };
}

/**
 * The key of a header or a path, without the quotes of a structured header's string (RFC 8941 3.3.3).
 * @throws HttpError `invalid_idempotency_key`
 */
export function idempotencyKey(written: string | undefined): string | undefined {
  if (written === undefined) return undefined;
  const key = QUOTED.exec(written)?.[1]?.replaceAll(/\\(["\\])/g, '$1') ?? written;
  if (!KEY.test(key)) throw new HttpError('invalid_idempotency_key');
  return key;
}

export const randomCommandId = (): string => randomUUID();

/** Method and path of a request, with its parameters filled in and a gift's shortcode resolved to the id. */
export function keyRoute(
  { method, path }: Pick<RouteDescription, 'method' | 'path'>,
  params: Readonly<Record<string, string>>,
): string {
  return `${method} ${path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))}`;
}

/** Command id of an idempotency key, scoped to user, client and `route` (`keyRoute`). */
export function keyedCommandId(hash: KeyedHash, principal: Principal, route: string, key: string): string {
  const user = principal.kind === 'user' ? principal.user.id : '';
  const client = principal.kind === 'anonymous' ? '' : principal.clientId;
  return hash('command', JSON.stringify([user, client, route, key]));
}

/** SHA-256 (base64url) of a body, independent of the order of its keys. */
export function bodyHashOf(body: unknown): string {
  return createHash('sha256').update(canonicalText(body)).digest('base64url');
}

/**
 * JSON in which an object is the list of its sorted fields. It is built piece by piece, because any caller may send
 * thousands of fields.
 */
function canonicalText(value: unknown): string {
  if (typeof value === 'number' && Number.isFinite(value)) return String(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? '';
  let text = '[';
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) text += (at === 0 ? '' : ',') + canonicalText(value[at]);
    // An object's text ends in a list, so a list that ends in a list or in the mark gets a mark. Other lists stay
    // unmarked: stored hashes must not change.
    const last: unknown = value.at(-1);
    return text + (Array.isArray(last) || last === '[]' ? ',"[]"]' : ']');
  }
  const fields = value as Readonly<Record<string, unknown>>;
  for (const name of Object.keys(fields).sort()) text += `[${JSON.stringify(name)},${canonicalText(fields[name])}],`;
  return `${text}["","{}"]]`;
}

/** How long a running request still holds its key, ms; 0: another may take it. */
function heldFor(
  { until, holder }: Extract<Entry, { state: 'running' }>,
  commandId: string,
  now: () => number,
  owner: KeyOwner | undefined,
): number {
  const left = until - now();
  const working = holder === undefined || owner === undefined || owner.isWorking(holder, commandId);
  // More time left than a hold has: a clock was set back, which must not lengthen the hold.
  return working && left > 0 && left <= HOLD_MS + CLOCK_SLACK_MS ? left : 0;
}

/**
 * The state of a key in the records: its first answer, `running`, or `undefined` where it is free. @throws
 * UnavailableError
 */
export async function lookUpKey(
  records: Pick<Records, 'get'>,
  commandId: string,
  owner?: KeyOwner,
): Promise<StoredAnswer | 'running' | undefined> {
  const entry = (await records.get<Entry>(ANSWERS + commandId))?.value;
  if (entry === undefined) return undefined;
  if (entry.state === 'done') return entry.answer;
  if (entry.first !== undefined) return entry.first;
  return heldFor(entry, commandId, clockMs, owner) > 0 ? 'running' : undefined;
}

/**
 * Takes the key, or returns the stored answer. A dead process's key is free at once. If the process was only frozen,
 * there is still one effect: the log finds the command by its id, and a refusal is answered only once it is stored.
 * @throws HttpError `request_in_progress`, `idempotency_key_reused`; UnavailableError
 */
export async function takeKey(
  records: Records,
  commandId: string,
  bodyHash: string,
  now: () => number = clockMs,
  owner?: KeyOwner,
): Promise<HeldKey | StoredAnswer> {
  const key = ANSWERS + commandId;
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
        const left = heldFor(entry, commandId, now, owner);
        if (left > 0)
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
    if (version !== undefined)
      return { ...held(records, key, version, { bodyHash, first, now, end }), repeats: present !== undefined };
  }
}

interface Holding {
  readonly bodyHash: string;
  readonly first: StoredAnswer | undefined;
  readonly now: () => number;
  /** Ends the mark of the command as in progress, even if its outcome could not be stored. */
  end(): void;
}

function held(
  records: Records,
  key: string,
  version: number,
  { bodyHash, first, now, end }: Holding,
): Omit<HeldKey, 'repeats'> {
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
