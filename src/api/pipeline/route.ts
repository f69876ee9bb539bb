/** Routes as plain objects, the single source of routers, request steps and OpenAPI description. */
import type { Readable } from 'node:stream';
import type { AccessRequest } from '../../domain/access.js';
import type { Role } from '../../domain/account.js';
import type { ErrorCode } from '../../domain/errors.js';
import type { Position } from '../../ports/eventStore.js';
import type { ReadBySome } from '../../projections/index.js';
import type { Principal } from './principal.js';
import type { ErrorAnswer } from './errors.js';
import type { Follower } from './positions.js';

/**
 * A JSON schema (2020-12 as far as OpenAPI 3.1 and ajv share it). `x-errors` has exact messages by keyword
 * (`validation.ts`).
 */
export type Schema = Readonly<Record<string, unknown>>;

/** Callers that a route accepts. `none`: no token is needed; `any`: a client's or a user's token; `user`: a user's. */
export type RouteCaller = 'none' | 'any' | 'user';

export interface SuccessAnswer {
  readonly status: number;
  readonly description: string;
  /** JSON schema of the answer; absent: the answer is not JSON (see `contentType`). */
  readonly schema?: Schema;
  readonly example?: unknown;
  readonly contentType?: string;
  /** Further content types of the same answer, as text. */
  readonly alsoAs?: readonly string[];
  /** The same answer in other JSON, by content type. */
  readonly alsoJson?: Readonly<Record<string, { readonly schema: Schema; readonly example: unknown }>>;
  /** Descriptions of this answer's own headers, by header name; headers of every answer are not listed. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Call {
  /** Path parameters by name. A gift's shortcode has already been replaced by the gift's id. */
  readonly params: Readonly<Record<string, string>>;
  /**
   * Whether the path has the gift's shortcode, which opens the gift to strangers (docs/api/gifts.md#what-opens-a-gift).
   */
  readonly byShortcode: boolean;
  /** Query parameters, validated and converted. List parameters (`embed[]`) are arrays, named without brackets. */
  readonly query: Readonly<Record<string, unknown>>;
  /** Body, validated unless the route has `bodyCheckedByHandler`; `{}` where an optional body is absent. */
  readonly body: Readonly<Record<string, unknown>>;
  /** Every requested relation, with each step of a dotted relation; those of the query come first. */
  readonly embeds: readonly string[];
  /** The raw bytes of a signed body; otherwise empty. */
  readonly bytes: Buffer;
  /** Log position that the caller sent in `Gift-Position`; `undefined` without the header or for another log. */
  readonly position: Position | undefined;
  readonly principal: Principal;
  readonly requestId: string;
  /** Id of the command in the log: an HMAC of caller, route and idempotency key, or random without a key. */
  readonly commandId: string;
  /** Keyed hash of the canonical body's SHA-256; only with an idempotency key. */
  readonly bodyHash?: string;
  /**
   * The log position of the first answer to this command, where its body was not stored: the answer is made again
   * without later events.
   */
  readonly firstPosition?: Position;
  /** Whether an earlier request with this key may have carried the command out. */
  readonly repeats: boolean;
  /** Caller's IP address, for throttling and limits; `unknown` for a Unix socket. */
  readonly address: string;
  /** Path as received, without the query; `rawQuery` is the query as received, without `?`. */
  readonly path: string;
  readonly rawQuery: string;
  /** Signal for long work, aborted with CallerLeftError when the caller leaves before the answer. */
  readonly left: AbortSignal;
  /** Value of a request header; `name` is in lower case. */
  header(name: string): string | undefined;
  /**
   * The content type that `Accept` prefers (RFC 9110 12.5.1), the first of equally preferred ones; `undefined`: none of
   * these.
   */
  preferredType(types: readonly string[]): string | undefined;
}

/** A call before its body and query are validated, for 404 and 403. */
export type EarlyCall = Omit<Call, 'query' | 'body' | 'bytes' | 'embeds'>;

export type Handler = (call: Call) => Promise<Answer>;

/**
 * Content of an access record without its reason, stored with the answer for repeated requests
 * (docs/support.md#access-records).
 */
export interface AccessRecord {
  readonly request: AccessRequest;
  readonly count: number;
}

export interface Answer {
  /** Default: 200. */
  readonly status?: number;
  /** Object sent as JSON; a string or stream is sent as it is, with the `Content-Type` of `headers` (default JSON). */
  readonly body: object | string | Readable;
  readonly headers?: Readonly<Record<string, string>>;
  /** The log's position after a write: sent as `Gift-Position`. */
  readonly position?: Position | undefined;
  /**
   * Read models to wait for before the answer is sent, at most a second (`waitUntilProjected`). The answer itself must
   * not be read from them.
   */
  readonly waitFor?: readonly Follower[];
  /** The answer was made from events of an earlier request with the same key: sent as `Idempotent-Replayed: true`. */
  readonly replayed?: boolean;
  /** The body holds data that must not be stored: for a repeated request it is made again from the events. */
  readonly unstored?: boolean;
  /** Access record that the handler appends; for a repeated answer the route's `recordAgain` appends it. */
  readonly accessRecord?: AccessRecord;
}

/** Renders an error as an HTML page. `headers` are sent in addition to those of the error. */
export type ErrorPage = (error: Pick<ErrorAnswer, 'code' | 'headers'>) => {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

export interface RouteDescription {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** In the syntax of @koa/router, without a trailing slash (both are served): `/api/v2/gifts/:giftId`. */
  readonly path: string;
  /** The operation id, in camel case and unique. Stable across releases, for generated clients. */
  readonly operation: string;
  readonly summary: string;
  readonly tag: string;
  readonly description?: string;
  readonly caller: RouteCaller;
  /**
   * Roles of which the user needs one (docs/support.md#ops-roles), else 403 `Forbidden.`; only with caller `user`.
   */
  readonly roles?: readonly Role[];
  /** Relations that `embed[]` accepts. Absent: under `/api/v2` every relation is refused as unknown. */
  readonly embeds?: readonly string[];
  /** Object schema of the query, in which list parameters are named without brackets. */
  readonly query?: Schema;
  /** Whether unknown query parameters are refused. */
  readonly knownParametersOnly?: boolean;
  /** Object schema of the body. Absent: requests other than GET may have an empty object (`bodyOf`). */
  readonly body?: Schema;
  readonly bodyOptional?: boolean;
  /** The handler validates the body, in its own order; `body` only describes it. */
  readonly bodyCheckedByHandler?: boolean;
  /** The header that signs the raw body. The handler verifies and parses `bytes`; `body` only describes them. */
  readonly signature?: { readonly header: string; readonly description: string };
  /** The route leads to outward work, and is refused while that is held (docs/design.md#outward-work). */
  readonly outward?: true;
  /** Also accepts form-encoded bodies (the token endpoint). */
  readonly formBody?: boolean;
  /** A password or a session's cookie proves the sender (the console's sign-in). */
  readonly ofSession?: true;
  /** `Cache-Control: no-store` for all answers and errors. Implied by caller `user`. */
  readonly noStore?: boolean;
  /**
   * Compresses large answers for callers that accept it: only where they hold no secret
   * (docs/api/conventions.md#compression).
   */
  readonly compressed?: boolean;
  readonly bodyExample?: unknown;
  readonly params?: Readonly<Record<string, string>>;
  /** The path parameter with a gift's id or shortcode, resolved to the id; other values are `gift not found`. */
  readonly giftParam?: string;
  /** Read models that the answer reads in addition to those of every route: `Gift-Position` waits for them, too. */
  readonly reads?: readonly ReadBySome[];
  /** The route reads gifts and purchases only by id, so they are shown as the log has them. Implied by `giftParam`. */
  readonly readsSingly?: boolean;
  readonly answers: readonly SuccessAnswer[];
  /** Fields that an error's body has alongside `error`, with an example. */
  readonly errorFields?: Readonly<
    Partial<Record<ErrorCode, { readonly properties: Readonly<Record<string, Schema>>; readonly example: object }>>
  >;
  /** Descriptions of an error's own headers, by header name; headers of every error with its status are not listed. */
  readonly errorHeaders?: Readonly<Partial<Record<ErrorCode, Readonly<Record<string, string>>>>>;
  /** HTML page sent in place of JSON where `Accept` prefers HTML: people open the route in a browser. */
  readonly errorPage?: ErrorPage;
  /** Errors that the handler raises; the steps add theirs (`commonErrors` in `pipeline.ts`). */
  readonly errors?: readonly ErrorCode[];
}

/**
 * `handle` answers a checked call. `open` is for routes with 404 or 403 before body and query are validated
 * (docs/api/conventions.md#order-of-checks): it finds the entity, refuses the caller, and returns the handler.
 */
export type Route = RouteDescription & {
  /**
   * Appends the access record of an answer that is about to be repeated for its key.
   * @throws UnavailableError: the answer is not sent then
   */
  readonly recordAgain?: (call: EarlyCall, record: AccessRecord, sent: unknown) => Promise<void>;
} & (
    | { readonly handle: Handler; readonly open?: never }
    | { readonly open: (call: EarlyCall) => Promise<Handler>; readonly handle?: never }
  );

const NO_FIELDS: Schema = { type: 'object', additionalProperties: false };

/** The schema that a request's body must meet; `undefined` (GET): the body is ignored. */
export const bodyOf = ({ method, body }: Pick<RouteDescription, 'method' | 'body'>): Schema | undefined =>
  body ?? (method === 'GET' ? undefined : NO_FIELDS);

export const takesKeys = (path: string): boolean => path.startsWith('/api/v2/') || path.startsWith('/ops/');

/**
 * Whether every request of the route counts towards the limits, and not only faulty ones:
 * docs/api/limits.md#what-counts.
 */
export const isLimited = (route: Proof): boolean => !provesItself(route);

type Proof = Pick<RouteDescription, 'formBody' | 'signature' | 'ofSession'>;

/**
 * Whether the body or a cookie proves its sender by a secret or a signature. Only faults count then, so that other
 * callers at the same address cannot keep the sender out.
 */
export const provesItself = ({ formBody, signature, ofSession }: Proof): boolean =>
  formBody === true || signature !== undefined || ofSession === true;

/**
 * Whether caches must not store the route's answers. An answer for a single user may hold a code, a PIN, a message, or
 * a payment's secret.
 */
export const mustNotBeCached = ({ noStore, caller }: Pick<RouteDescription, 'noStore' | 'caller'>): boolean =>
  noStore === true || caller === 'user';
