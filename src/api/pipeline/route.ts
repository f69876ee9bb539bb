/**
 * Routes as plain objects. Routers, the steps of a request and the OpenAPI description are all made from them, so that
 * none can disagree with another.
 */
import type { Readable } from 'node:stream';
import type { AccessRequest } from '../../domain/access.js';
import type { Role } from '../../domain/account.js';
import type { Position } from '../../ports/eventStore.js';
import type { ReadBySome } from '../../projections/index.js';
import type { Principal } from '../auth/principal.js';
import type { ErrorCode } from './errors.js';
import type { Follower } from './positions.js';

/**
 * A JSON schema (2020-12 as far as OpenAPI 3.1 and ajv share it). `x-errors` has exact messages by keyword, see
 * `validation.ts`.
 */
export type Schema = Readonly<Record<string, unknown>>;

/** Who may call a route. `none`: without a token; `any`: a client or a user; `user`: a user. */
export type RouteCaller = 'none' | 'any' | 'user';

export interface SuccessAnswer {
  readonly status: number;
  readonly description: string;
  /** Absent: the answer is no JSON (see `contentType`). */
  readonly schema?: Schema;
  readonly example?: unknown;
  readonly contentType?: string;
  /** Content types in which callers can have the same as text. */
  readonly alsoAs?: readonly string[];
  /** Names and meanings, besides those of every answer. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A checked request, for its handler. */
export interface Call {
  readonly params: Readonly<Record<string, string>>;
  /**
   * Validated and converted by the route's query schema. List parameters (`embed[]`) are arrays, named without
   * brackets.
   */
  readonly query: Readonly<Record<string, unknown>>;
  /** The validated body; `{}` where an optional one is absent. */
  readonly body: Readonly<Record<string, unknown>>;
  /** Every relation asked for, with each step of a dotted one; those of the query first. */
  readonly embeds: readonly string[];
  /** The bytes of a signed body; otherwise empty. */
  readonly bytes: Buffer;
  readonly principal: Principal;
  readonly requestId: string;
  /** The id of this command: an HMAC of caller, route and idempotency key, or random. */
  readonly commandId: string;
  /** SHA-256 (base64url) of the canonical body; set with an idempotency key. */
  readonly bodyHash?: string;
  /**
   * The log position of the first answer to this command, where that could not be stored. The same answer is made
   * again, with nothing that came later.
   */
  readonly firstPosition?: Position;
  /** The address that throttling counts by. */
  readonly address: string;
  /** The path without query; the query without `?`; both as they came. */
  readonly path: string;
  readonly rawQuery: string;
  /** Aborted, with CallerLeftError, when the caller leaves before the answer: for long work. */
  readonly left: AbortSignal;
  /** A request header, by its lower-case name. */
  header(name: string): string | undefined;
  /** The content type that `Accept` prefers (RFC 9110 12.5.1), the first of equals; `undefined`: none of these. */
  preferredType(types: readonly string[]): string | undefined;
}

/** A call before its body and query were validated: 404 and 403 depend on nothing else. */
export type EarlyCall = Omit<Call, 'query' | 'body' | 'bytes' | 'embeds'>;

export type Handler = (call: Call) => Promise<Answer>;

/** What was shown: the content of an access record (docs/decisions.md#access-records). */
export interface AccessRecord {
  readonly request: AccessRequest;
  readonly count: number;
}

export interface Answer {
  readonly status: number;
  /** Sent as JSON; a string or a stream as it is, with the `Content-Type` of `headers` (default JSON). */
  readonly body: object | string | Readable;
  readonly headers?: Readonly<Record<string, string>>;
  /** Where the log stood after a write: sent as `Gift-Position`. */
  readonly position?: Position;
  /**
   * Read models that are to show `position` before the answer is sent, a second at most (`waitUntilProjected`). The
   * answer must not be made of them.
   */
  readonly waitFor?: readonly Follower[];
  /** Made from the events of an earlier request with the same key: sent as `Idempotent-Replayed: true`. */
  readonly replayed?: boolean;
  /**
   * The content of its access record. The handler leaves the record; the route's `recordAgain` does when the answer is
   * repeated.
   */
  readonly accessRecord?: AccessRecord;
}

/** The description of an endpoint; `Route` adds its handler. */
export interface RouteDescription {
  readonly method: 'GET' | 'POST' | 'PATCH';
  /** As @koa/router takes it, without a trailing slash (both are served): `/api/v2/gifts/:giftId`. */
  readonly path: string;
  /** The operation id, in camel case: unique, and the same from release to release, since generated clients use it. */
  readonly operation: string;
  /** One line; `tag` is its group. */
  readonly summary: string;
  readonly tag: string;
  readonly description?: string;
  readonly caller: RouteCaller;
  /** One of these roles is needed (docs/decisions.md#ops-roles), else 403 `Forbidden.`; only with caller `user`. */
  readonly roles?: readonly Role[];
  /** Relations that `embed[]` may name. Absent: the parameter is ignored. */
  readonly embeds?: readonly string[];
  /** An object schema of the query parameters (a list parameter without its brackets). */
  readonly query?: Schema;
  /** Unknown query parameters are refused instead of ignored. */
  readonly knownParametersOnly?: boolean;
  /** An object schema. Absent: no body. */
  readonly body?: Schema;
  readonly bodyOptional?: boolean;
  /** The handler checks the body, in an order of its own; `body` only describes it. */
  readonly bodyCheckedByHandler?: boolean;
  /**
   * The body is signed, so it stays as it came: the handler gets its `bytes`, verifies the signature in this header and
   * parses them; `body` only describes them.
   */
  readonly signature?: { readonly header: string; readonly description: string };
  /** Takes form-encoded bodies, too (the token endpoint). */
  readonly formBody?: boolean;
  /** No answer or error may be cached: `Cache-Control: no-store`. Implied by caller `user`. */
  readonly noStore?: boolean;
  readonly bodyExample?: unknown;
  /** Path parameters and their meaning. */
  readonly params?: Readonly<Record<string, string>>;
  /**
   * The path parameter that is a gift's id or shortcode. It is resolved to the id; anything else is `gift not found`.
   */
  readonly giftParam?: string;
  /**
   * Read models that it answers from, besides those that every route waits for: `Gift-Position` is waited for in these,
   * too.
   */
  readonly reads?: readonly ReadBySome[];
  readonly answers: readonly SuccessAnswer[];
  /** Errors that say more than `error`: the whole body's schema, and an example of the rest. */
  readonly errorBodies?: Readonly<Partial<Record<ErrorCode, { readonly schema: Schema; readonly example: object }>>>;
  /** Names and meanings of headers, besides those of every error with its status. */
  readonly errorHeaders?: Readonly<Partial<Record<ErrorCode, Readonly<Record<string, string>>>>>;
  /** Its own errors; the steps add theirs (`pipeline.ts`). */
  readonly errors: readonly ErrorCode[];
}

/**
 * One endpoint. `handle` answers a checked call. A route that refuses with 404 or 403 before body and query are
 * validated (docs/decisions.md#order-of-checks) has `open`: it finds the entity, refuses the caller, and returns the
 * handler.
 */
export type Route = RouteDescription & {
  /**
   * Leaves the access record of an answer that is about to be repeated for its idempotency key.
   * @throws UnavailableError: then it is not sent
   */
  readonly recordAgain?: (call: EarlyCall, record: AccessRecord) => Promise<void>;
} & (
    | { readonly handle: Handler; readonly open?: never }
    | { readonly open: (call: EarlyCall) => Promise<Handler>; readonly handle?: never }
  );

/** Whether the path takes idempotency keys and positions: routes for callers, and those for support and auditors. */
export const takesKeys = (path: string): boolean => path.startsWith('/api/v2/') || path.startsWith('/ops/');

/**
 * Whether an answer must not be cached: one for a single user may hold a code, a PIN, a message, or the secret of a
 * payment.
 */
export const mustNotBeCached = ({ noStore, caller }: Pick<RouteDescription, 'noStore' | 'caller'>): boolean =>
  noStore === true || caller === 'user';
