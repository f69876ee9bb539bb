/** Routes as plain objects, the single source of routers, request steps and OpenAPI description. */
import type { Readable } from 'node:stream';
import type { AccessRequest } from '../../domain/access.js';
import type { Role } from '../../domain/account.js';
import type { Position } from '../../ports/eventStore.js';
import type { ReadBySome } from '../../projections/index.js';
import type { Principal } from './principal.js';
import type { ErrorAnswer, ErrorCode } from './errors.js';
import type { Follower } from './positions.js';

/**
 * A JSON schema (2020-12 as far as OpenAPI 3.1 and ajv share it). `x-errors` has exact messages by keyword
 * (`validation.ts`).
 */
export type Schema = Readonly<Record<string, unknown>>;

/** `none`: without a token; `any`: a client or a user. */
export type RouteCaller = 'none' | 'any' | 'user';

export interface SuccessAnswer {
  readonly status: number;
  readonly description: string;
  /** Absent: the answer is not JSON (see `contentType`). */
  readonly schema?: Schema;
  readonly example?: unknown;
  readonly contentType?: string;
  /** Further content types of the same answer, as text. */
  readonly alsoAs?: readonly string[];
  /** Descriptions by name, besides the headers of every answer. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Call {
  /** A gift's shortcode is the gift's id here. */
  readonly params: Readonly<Record<string, string>>;
  /** The path has the gift's shortcode, which opens the gift to strangers (docs/decisions.md#what-opens-a-gift). */
  readonly byShortcode: boolean;
  /** Validated and converted. List parameters (`embed[]`) are arrays, named without brackets. */
  readonly query: Readonly<Record<string, unknown>>;
  /** Validated; `{}` where an optional body is absent. */
  readonly body: Readonly<Record<string, unknown>>;
  /** Every requested relation, with each step of a dotted one; those of the query first. */
  readonly embeds: readonly string[];
  /** The raw bytes of a signed body; otherwise empty. */
  readonly bytes: Buffer;
  /** The caller's `Gift-Position`; `undefined`: none, or of another log. */
  readonly position: Position | undefined;
  readonly principal: Principal;
  readonly requestId: string;
  /** An HMAC of caller, route and idempotency key, or random. */
  readonly commandId: string;
  /** SHA-256 (base64url) of the canonical body; only with an idempotency key. */
  readonly bodyHash?: string;
  /**
   * The log position of the first answer to this command, where its body was not stored: the answer is made again
   * without later events.
   */
  readonly firstPosition?: Position;
  /** For throttling. */
  readonly address: string;
  /** As received: the path without query; the query without `?`. */
  readonly path: string;
  readonly rawQuery: string;
  /** For long work: aborted with CallerLeftError when the caller leaves before the answer. */
  readonly left: AbortSignal;
  /** `name` in lower case. */
  header(name: string): string | undefined;
  /** By `Accept` (RFC 9110 12.5.1), the first of equals; `undefined`: none of these. */
  preferredType(types: readonly string[]): string | undefined;
}

/** A call before its body and query are validated, for 404 and 403. */
export type EarlyCall = Omit<Call, 'query' | 'body' | 'bytes' | 'embeds'>;

export type Handler = (call: Call) => Promise<Answer>;

/** The content of an access record (docs/decisions.md#access-records), without the reason: it is stored for repeats. */
export interface AccessRecord {
  readonly request: AccessRequest;
  readonly count: number;
}

export interface Answer {
  readonly status: number;
  /** Sent as JSON; a string or stream as it is, with the `Content-Type` of `headers` (default JSON). */
  readonly body: object | string | Readable;
  readonly headers?: Readonly<Record<string, string>>;
  /** The log's position after a write: sent as `Gift-Position`. */
  readonly position?: Position | undefined;
  /**
   * Read models to wait for before the answer is sent, at most a second (`waitUntilProjected`). The answer must not be
   * made of them.
   */
  readonly waitFor?: readonly Follower[];
  /** Made from the events of an earlier request with the same key: sent as `Idempotent-Replayed: true`. */
  readonly replayed?: boolean;
  /** The body holds what must not be stored: a repeated request has it made anew from the events. */
  readonly unstored?: boolean;
  /** The handler appends the record; for a repeated answer the route's `recordAgain` does. */
  readonly accessRecord?: AccessRecord;
}

/** `headers`: besides those of the error. */
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
  /** One of these is needed (docs/decisions.md#ops-roles), else 403 `Forbidden.`; only with caller `user`. */
  readonly roles?: readonly Role[];
  /** Relations for `embed[]`. Absent: under `/api/v2` each is refused as unknown. */
  readonly embeds?: readonly string[];
  /** An object schema (list parameters without brackets). */
  readonly query?: Schema;
  /** Refuses unknown query parameters. */
  readonly knownParametersOnly?: boolean;
  /** An object schema. Absent: requests other than GET may have an empty object (`bodyOf`). */
  readonly body?: Schema;
  readonly bodyOptional?: boolean;
  /** The handler validates the body, in its own order; `body` only describes it. */
  readonly bodyCheckedByHandler?: boolean;
  /** The header that signs the raw body. The handler verifies and parses `bytes`; `body` only describes them. */
  readonly signature?: { readonly header: string; readonly description: string };
  /** Leads to outward work: refused while that waits (docs/decisions.md#outward-work). */
  readonly outward?: true;
  /** Also accepts form-encoded bodies (the token endpoint). */
  readonly formBody?: boolean;
  /** `Cache-Control: no-store` for all answers and errors. Implied by caller `user`. */
  readonly noStore?: boolean;
  /** Compresses large answers for callers that ask for it: only where they hold no secret (docs/decisions.md#compression). */
  readonly compressed?: boolean;
  readonly bodyExample?: unknown;
  readonly params?: Readonly<Record<string, string>>;
  /** The path parameter with a gift's id or shortcode, resolved to the id; other values are `gift not found`. */
  readonly giftParam?: string;
  /** Read models of the answer, besides those of every route: `Gift-Position` waits for them, too. */
  readonly reads?: readonly ReadBySome[];
  /** Reads gifts and purchases by their ids only: they are shown as the log has them. Implied by `giftParam`. */
  readonly readsSingly?: boolean;
  readonly answers: readonly SuccessAnswer[];
  /** The fields that an error has beside `error`, with an example of them. */
  readonly errorFields?: Readonly<
    Partial<Record<ErrorCode, { readonly properties: Readonly<Record<string, Schema>>; readonly example: object }>>
  >;
  /** Descriptions by name, besides the headers of every error with its status. */
  readonly errorHeaders?: Readonly<Partial<Record<ErrorCode, Readonly<Record<string, string>>>>>;
  /** In place of JSON, where the caller's `Accept` prefers HTML: people open the route in a browser. */
  readonly errorPage?: ErrorPage;
  /** The steps add theirs (`pipeline.ts`). */
  readonly errors: readonly ErrorCode[];
}

/**
 * `handle` answers a checked call. `open` is for routes with 404 or 403 before body and query are validated
 * (docs/decisions.md#order-of-checks): it finds the entity, refuses the caller, and returns the handler.
 */
export type Route = RouteDescription & {
  /**
   * Appends the access record of an answer that is about to be repeated for its key.
   * @throws UnavailableError: then it is not sent
   */
  readonly recordAgain?: (call: EarlyCall, record: AccessRecord, sent: unknown) => Promise<void>;
} & (
    | { readonly handle: Handler; readonly open?: never }
    | { readonly open: (call: EarlyCall) => Promise<Handler>; readonly handle?: never }
  );

const NO_FIELDS: Schema = { type: 'object', additionalProperties: false };

/** The schema that a request's body must meet; `undefined`: bodies are not looked at (GET). */
export const bodyOf = ({ method, body }: Pick<RouteDescription, 'method' | 'body'>): Schema | undefined =>
  body ?? (method === 'GET' ? undefined : NO_FIELDS);

export const takesKeys = (path: string): boolean => path.startsWith('/api/v2/') || path.startsWith('/ops/');

/** Whether every request counts, and not only faulty ones: docs/limits.md#what-counts. */
export const isLimited = (route: Pick<RouteDescription, 'formBody' | 'signature'>): boolean => !provesItself(route);

/** The body shows who sends it, by a secret or a signature: only faults count, lest others at the address refuse it. */
export const provesItself = ({ formBody, signature }: Pick<RouteDescription, 'formBody' | 'signature'>): boolean =>
  formBody === true || signature !== undefined;

/** An answer for a single user may hold a code, a PIN, a message, or a payment's secret. */
export const mustNotBeCached = ({ noStore, caller }: Pick<RouteDescription, 'noStore' | 'caller'>): boolean =>
  noStore === true || caller === 'user';
