/**
 * What a route is. A resource's file exports its routes as plain objects; the router, the checks before a handler and
 * the OpenAPI description are all made from them, so none of these can disagree with another.
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
 * A JSON schema (2020-12 as far as OpenAPI 3.1 and ajv share it). `errors` in `x-errors` are exact messages by keyword,
 * see `validation.ts`.
 */
export type Schema = Readonly<Record<string, unknown>>;

/** Who may call a route: `none` needs no token; `any` a client's or a user's; `user` a user's. */
export type RouteCaller = 'none' | 'any' | 'user';

/** One answer a route gives when it succeeds. */
export interface SuccessAnswer {
  readonly status: number;
  readonly description: string;
  /** Absent: the answer is no JSON (see `contentType`). */
  readonly schema?: Schema;
  readonly example?: unknown;
  readonly contentType?: string;
  /** Content types in which the same is sent as text, beside JSON: for callers who ask for it. */
  readonly alsoAs?: readonly string[];
  /** Header names with what they mean, beside those every answer carries. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** What a handler is given: everything has been checked. */
export interface Call {
  readonly params: Readonly<Record<string, string>>;
  /**
   * Validated and converted by the route's query schema; list parameters (`embed[]`) are arrays under their name
   * without brackets.
   */
  readonly query: Readonly<Record<string, unknown>>;
  /** The validated body; `{}` where an optional one is absent. */
  readonly body: Readonly<Record<string, unknown>>;
  /**
   * Every relation asked for, each step of a dotted one included, in query and body; in the order asked for, the query
   * first.
   */
  readonly embeds: readonly string[];
  /** The body's bytes as they came, where the route's body is signed; else empty. */
  readonly bytes: Buffer;
  readonly principal: Principal;
  readonly requestId: string;
  /** Names this command for ever: an HMAC of caller, route and idempotency key, or random. */
  readonly commandId: string;
  /** SHA-256 (base64url) of the canonical body, where the request came with an idempotency key. */
  readonly bodyHash?: string;
  /**
   * What the first answer to this command had seen of the log, where it could not be kept: the same is to be made
   * again, and show nothing that came after.
   */
  readonly firstPosition?: Position;
  /** The address that throttling counts by. */
  readonly address: string;
  /** The request's path as it came, without query; its query as it came, without `?`. */
  readonly path: string;
  readonly rawQuery: string;
  /** Aborted, with CallerLeftError, when the caller goes away before the answer: for what takes long. */
  readonly left: AbortSignal;
  /** A request header, lower-case name. */
  header(name: string): string | undefined;
  /**
   * Of these content types the one that `Accept` prefers (RFC 9110 12.5.1); of equals the first. `undefined`: it takes
   * none of them.
   */
  preferredType(types: readonly string[]): string | undefined;
}

/** A call before its body, query and embeds have been checked: what decides 404 and 403 looks at nothing else. */
export type EarlyCall = Omit<Call, 'query' | 'body' | 'bytes' | 'embeds'>;

/** What answers a checked call. */
export type Handler = (call: Call) => Promise<Answer>;

/** Who saw what: what the record of an answer says (decisions 11). */
export interface Seen {
  readonly request: AccessRequest;
  readonly count: number;
}

/** What a handler answers. */
export interface Answer {
  readonly status: number;
  /**
   * Sent as JSON; a string is sent as it is, and so is a stream, with the content type that `headers` give (default
   * JSON).
   */
  readonly body: object | string | Readable;
  readonly headers?: Readonly<Record<string, string>>;
  /** Where the log stood after a write: sent as `Gift-Position`. */
  readonly position?: Position;
  /**
   * Read models that are to show `position` before this is sent, a second at most (`waitUntilProjected`); with none nothing
   * is waited for. It must not be made of them: what is, waits before.
   */
  readonly waitFor?: readonly Follower[];
  /**
   * This answer was made from what an earlier request with the same key had appended: sent as
   * `Idempotent-Replayed: true`.
   */
  readonly replayed?: boolean;
  /**
   * What its record says; the record is left by whoever answers so, and by the route's `seenAgain` when the answer is
   * sent again.
   */
  readonly seen?: Seen;
}

/** One endpoint, as it is described; `Route` adds what answers it. */
export interface RouteDescription {
  readonly method: 'GET' | 'POST' | 'PATCH';
  /** As find-my-way takes it, without a trailing slash (both are served): `/api/v2/gifts/:giftId`. */
  readonly path: string;
  /**
   * What clients made from the description call it, in camel case: its operation id. A name of its own, and the same
   * from release to release.
   */
  readonly operation: string;
  /** One line for the description; `tag` groups it (the file's resource). */
  readonly summary: string;
  readonly tag: string;
  readonly description?: string;
  readonly caller: RouteCaller;
  /** The calling user needs one of these roles (decisions 8), else 403 `Forbidden.`; with caller `user` only. */
  readonly roles?: readonly Role[];
  /** Relations that `embed[]` may name. Absent: the route embeds nothing and ignores the parameter. */
  readonly embeds?: readonly string[];
  /** An object schema; its properties are the query parameters (a list parameter without its brackets). */
  readonly query?: Schema;
  /** Other query parameters than those of `query` are refused, not ignored. */
  readonly knownParametersOnly?: boolean;
  /** An object schema. Absent: the route takes no body. */
  readonly body?: Schema;
  readonly bodyOptional?: boolean;
  /** The handler checks the body by itself, and says in its own order what is wrong; `body` only describes it. */
  readonly bodyCheckedByHandler?: boolean;
  /**
   * The body is signed by whoever sends it, so that it is not touched: the handler gets its `bytes`, checks them by the
   * signature in this header and parses them; `body` only describes them.
   */
  readonly signature?: { readonly header: string; readonly description: string };
  /** Form-encoded bodies are taken as well (only the token endpoint). */
  readonly formBody?: boolean;
  /**
   * No answer, be it an error, may be kept by anyone on the way: sent with `Cache-Control: no-store`. So it is with
   * caller `user` anyway.
   */
  readonly noStore?: boolean;
  readonly bodyExample?: unknown;
  /** Path parameters with what they mean, for the description. */
  readonly params?: Readonly<Record<string, string>>;
  /**
   * Path parameters that are gift ids or shortcodes: resolved to ids before keys are scoped; one that is neither is
   * `gift not found`.
   */
  readonly giftParam?: string;
  /**
   * Read models that it answers from beside those that every route waits for: a caller's `Gift-Position` is waited for
   * in these too.
   */
  readonly reads?: readonly ReadBySome[];
  readonly answers: readonly SuccessAnswer[];
  /** Errors that say more than `error`: the whole body's schema, and an example of what they say. */
  readonly errorBodies?: Readonly<Partial<Record<ErrorCode, { readonly schema: Schema; readonly example: object }>>>;
  /** Headers of errors, by name with what they mean, beside those that every error of its status carries. */
  readonly errorHeaders?: Readonly<Partial<Record<ErrorCode, Readonly<Record<string, string>>>>>;
  /** What it may refuse, beside what every route of its kind may (`pipeline.ts` adds those). */
  readonly errors: readonly ErrorCode[];
}

/**
 * One endpoint. `handle` answers a call that has been checked. A route whose 404 or 403 come before the checks of body
 * and query (decisions 1) has `open` instead: it finds the entity, refuses the caller, and gives what then handles the
 * call.
 */
export type Route = RouteDescription & {
  /**
   * Leaves the record of an answer that was given before, and is about to be sent again for its idempotency key.
   * @throws UnavailableError: then it is not sent
   */
  readonly seenAgain?: (call: EarlyCall, seen: Seen) => Promise<void>;
} & (
    | { readonly handle: Handler; readonly open?: never }
    | { readonly open: (call: EarlyCall) => Promise<Handler>; readonly handle?: never }
  );

/**
 * Whether callers may send an idempotency key and a position with this path: what the service does for its callers and
 * for those who keep it running.
 */
export const takesKeys = (path: string): boolean => path.startsWith('/api/v2/') || path.startsWith('/ops/');

/**
 * Whether nobody on the way, nor the caller's own device, may keep what a route answers: what is for one user alone may
 * be a code, a PIN, a message, or the secret of a payment.
 */
export const keptByNobody = ({ noStore, caller }: Pick<RouteDescription, 'noStore' | 'caller'>): boolean =>
  noStore === true || caller === 'user';
