/**
 * Common to all routes under `/ops` (docs/support.md#ops-roles, docs/support.md#access-records): roles, personal
 * fields only for a reason, and the access record, appended before the answer is sent.
 */
import { Readable } from 'node:stream';
import { ticks } from '../../lib/world.js';
import type { Sight } from '../../ops/history/eventView.js';
import type { CommandContext } from '../../commands/transact.js';
import type { AccessRecorder, Asker, StartedOperation } from '../../commands/recordAccess.js';
import type { AccessRequest } from '../../domain/access.js';
import type { Role } from '../../domain/account.js';
import { MAX_REASON } from '../../domain/reason.js';
import type { Position } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { faultOf } from '../pipeline/errors.js';
import { contextOf, userOf } from '../pipeline/commandContext.js';
import type { DailyLimit, TakeDaily } from '../limits/dailyLimits.js';
import type { Answer, Call, EarlyCall, Handler, Route, RouteDescription, Schema } from '../pipeline/route.js';
import { flagSchema, textSchema } from '../pipeline/schemas.js';

/** How often the same call to a `watched` route is recorded, ms. */
const WATCHED_MS = 60_000;
const MAX_WATCHERS = 1_000;

export const reasonProperty = textSchema('The reason, stored with the record of this call.', {
  minLength: 1,
  maxLength: MAX_REASON,
  pattern: '\\S',
  'x-errors': { pattern: 'reason must not be empty' },
});

/** Field of a rebuild or repair request: without it, a log that is not what was signed is refused. */
export const alteredProperty = flagSchema('Also from a log that is not what was signed; this is recorded.', {
  const: true,
  'x-message': 'altered must be true',
});

export interface OpsAnswer extends Answer {
  /** How many records (events, gifts, lines) the answer shows, for the access record. */
  readonly shown: number;
  /** Further fields of the request, for the access record. */
  readonly recorded?: Readonly<Record<string, unknown>>;
  /** Whether the answer only says that nothing was added since an earlier one: it leaves no access record. */
  readonly nothingNew?: boolean;
}

/** A piece of an export. `position`: the export's progress in the log. */
export interface Exported {
  readonly text: string;
  readonly count: number;
  readonly position: Position | null;
}

/** A streamed answer, for any number of records. */
export interface OpsStream {
  readonly contentType: string;
  /** Further fields of the request, for the access record, as in `OpsAnswer`. */
  readonly recorded?: Readonly<Record<string, unknown>>;
  /** Starts after the export is recorded; returns early when the caller leaves. */
  records(): AsyncIterable<Exported>;
}

/** Roles of a route that support and auditors may call. */
export const STAFF = ['support', 'auditor'] as const satisfies OpsRoute['roles'];

export interface OpsRoute extends Omit<
  RouteDescription,
  'caller' | 'roles' | 'noStore' | 'giftParam' | 'knownParametersOnly'
> {
  /** Roles that may call the route; one of them suffices. */
  readonly roles: readonly [Role, ...Role[]];
  /** Answers have personal fields, masked unless the caller sends `personal=true` with a `reason`. */
  readonly personal?: true;
  /** Answers have personal fields in any case: the caller must send a `reason`. */
  readonly allPersonal?: true;
  /**
   * The access record leaves the reason out: it is about many persons, and each event of the call has it under the key
   * of its own.
   */
  readonly withoutReason?: true;
  /** Names of personal fields of body and query, which the access record leaves out. */
  readonly unrecorded?: readonly string[];
  /**
   * Checks that the path's entity exists, before faults of body and query are reported
   * (docs/api/conventions.md#order-of-checks).
   * @throws Refusal, HttpError; UnavailableError
   */
  readonly exists?: (call: EarlyCall) => Promise<unknown>;
  /**
   * Daily limit that the caller's calls count against (docs/limits.md#support); absent: only calls that show personal
   * fields count.
   */
  readonly daily?: DailyLimit;
  /**
   * Whether the route shows status that callers may poll: the same call by the same user that shows as many records is
   * recorded once a minute.
   */
  readonly watched?: true;
  /**
   * Whether the route answers where the log takes no record: it shows no record itself, but why the log takes none
   * (docs/decisions/diagnosis-without-record.md).
   */
  readonly evenUnrecorded?: true;
  /**
   * Handles a call. `sight.personal`: the caller requested personal fields and gave a reason. `start` records the call
   * before a change without events of its own. The handler then also records the end, and the answer is not recorded
   * again.
   */
  handle(call: Call, sight: Sight, start: () => Promise<StartedOperation>): Promise<OpsAnswer | OpsStream>;
}

const PERSONAL_PARAMETERS = {
  personal: flagSchema('Also show personal fields; requires a `reason`.', { default: false }),
  reason: reasonProperty,
} as const;

/** @param takeDaily counts a call against the caller's daily limit; absent: the route shows no personal fields */
export function opsRoute(
  access: AccessRecorder,
  {
    roles,
    personal,
    allPersonal,
    daily,
    watched,
    evenUnrecorded,
    unrecorded = [],
    withoutReason,
    exists,
    errors = [],
    handle,
    ...description
  }: OpsRoute,
  takeDaily?: TakeDaily,
): Route {
  const lately = watched === true ? watchers() : undefined;
  const query = queryOf(description.query, personal, allPersonal);
  const recording: Handler = async (call) => {
    const showsPersonal = allPersonal === true || (personal === true && call.query['personal'] === true);
    const reason = reasonOf(call);
    if (showsPersonal && reason === null) throw faultOf('reason', 'is required with personal');
    const request: AccessRequest = {
      what: `${description.method} ${description.path}`,
      asked: requestedOf(call, unrecorded),
      personal: showsPersonal,
      reason: withoutReason === true ? null : reason,
    };
    const asker = askerOf(call);
    const counted = daily ?? (showsPersonal ? 'personal-reads' : undefined);
    // A repeat learns how the command ended, which has been counted.
    if (counted !== undefined && !call.repeats) await takeDaily?.(counted, userOf(call).id);
    let operation: StartedOperation | undefined;
    const answer = await handle(
      call,
      { personal: showsPersonal },
      async () => (operation = await access.start(asker, request)),
    );
    const { recorded } = answer;
    const shown = recorded === undefined ? request : { ...request, asked: { ...request.asked, ...recorded } };
    if ('records' in answer) return streamed(access, asker, shown, answer);
    const { shown: count, recorded: _, nothingNew = false, ...rest } = answer;
    if (operation === undefined && !nothingNew)
      await (lately ?? always)([asker.by, request, count], async () => access.shown(asker, shown, count)).catch(
        (error: unknown) => {
          if (evenUnrecorded !== true || !(error instanceof UnavailableError)) throw error;
        },
      );
    return { ...rest, accessRecord: { request: { ...shown, reason: null }, count } };
  };
  const counts = daily !== undefined || personal === true || allPersonal === true;
  return {
    ...description,
    errors: [...errors, ...(counts ? (['too_many_requests'] as const) : [])],
    ...(query === undefined ? {} : { query }),
    caller: 'user',
    roles,
    knownParametersOnly: true,
    ...(exists === undefined ? { handle: recording } : { open: async (early) => exists(early).then(() => recording) }),
    recordAgain: async (call, { request, count }, sent) =>
      access.shown(askerOf(call), { ...request, reason: withoutReason === true ? null : reasonIn(sent) }, count),
  };
}

function askerOf(call: EarlyCall): Asker {
  const { by } = contextOf(call, '');
  return { by, requestId: call.requestId };
}

function queryOf(query: Schema | undefined, personal?: true, allPersonal?: true): Schema | undefined {
  if (allPersonal === true) return withParameters(query, { reason: reasonProperty }, ['reason']);
  return personal === true ? withParameters(query, PERSONAL_PARAMETERS) : query;
}

function withParameters(query: Schema | undefined, properties: object, required: readonly string[] = []): Schema {
  const before = query?.['required'] as readonly string[] | undefined;
  return {
    type: 'object',
    ...query,
    ...(required.length === 0 ? {} : { required: [...(before ?? []), ...required] }),
    properties: { ...(query?.['properties'] as object | undefined), ...properties },
  };
}

const reasonOf = ({ query, body }: Call): string | null => reasonIn(query) ?? reasonIn(body);

function reasonIn(sent: unknown): string | null {
  const { reason } = (sent ?? {}) as { readonly reason?: unknown };
  return typeof reason === 'string' ? reason.trim() : null;
}

function requestedOf({ params, query, body }: Call, unrecorded: readonly string[]): Record<string, unknown> {
  const { personal: _p, reason: _q, ...asked } = query;
  const recorded = Object.entries({ ...asked, ...body }).filter(
    ([field]) => field !== 'reason' && !unrecorded.includes(field),
  );
  return { ...params, ...Object.fromEntries(recorded) };
}

/**
 * The context of a command whose body has a reason, without the body's hash. From a hash in the events the reason could
 * be guessed, also after an erasure.
 */
export function supportContextOf(call: EarlyCall, now: string): CommandContext {
  const { bodyHash: _, ...context } = contextOf(call, now);
  return context;
}

type Recording = (what: object, record: () => Promise<void>) => Promise<void>;

const always: Recording = async (_what, record) => record();

function watchers(): Recording {
  const recorded = new Map<string, number>();
  return async (what, record) => {
    const key = JSON.stringify(what);
    const before = recorded.get(key);
    const now = ticks();
    if (before !== undefined && now - before < WATCHED_MS) return;
    await record();
    if (recorded.size >= MAX_WATCHERS) recorded.clear();
    recorded.set(key, now);
  };
}

/** Streams the records; the start and the end of the stream are recorded, also of a failed one. */
async function streamed(
  access: AccessRecorder,
  asker: Asker,
  request: AccessRequest,
  { contentType, records }: OpsStream,
): Promise<Answer> {
  const operation = await access.start(asker, request);
  let count = 0;
  let position: Position | null = null;
  let complete = false;
  const end = async (): Promise<void> => operation.end(count, position, complete);
  async function* texts(): AsyncGenerator<string> {
    try {
      for await (const exported of records()) {
        count += exported.count;
        position = exported.position;
        if (exported.text !== '') yield exported.text;
      }
      complete = true;
    } finally {
      await end();
    }
  }
  const reading = texts();
  const read: AsyncIterableIterator<string> = {
    next: async () => reading.next(),
    async return() {
      const done = await reading.return(undefined);
      // Where the stream was never read (HEAD, a caller that has left), `texts` has not run, and so has recorded no
      // end.
      await end();
      return done;
    },
    [Symbol.asyncIterator]: () => read,
  };
  return {
    body: Readable.from(read, { objectMode: false, highWaterMark: 262_144 }),
    headers: { 'Content-Type': contentType },
  };
}
