/** One request on its way through the steps: what is known of it so far, and the call that its handler gets. */
import type { Context } from 'koa';
import type { KeyedHash } from '../../domain/keyedHash.js';
import type { Position } from '../../ports/eventStore.js';
import type { Records } from '../../ports/readStore.js';
import type { Principal } from '../auth/principal.js';
import { callerLeft } from './callerLeft.js';
import type { HeldKey, KeyOwner } from './idempotency.js';
import type { PositionGate } from './positions.js';
import type { RequestState } from './requestState.js';
import type { Answer, Call, Handler, RouteCaller } from './route.js';

/** What the steps need. */
export interface PipelineDeps {
  /** The caller, where it is remembered; `undefined`: `authenticate` must look. @throws HttpError 403 */
  recognise(authorization: string | undefined, need: RouteCaller): Principal | undefined;
  /** @throws HttpError 401, 403; UnavailableError */
  authenticate(authorization: string | undefined, need: RouteCaller): Promise<Principal>;
  /** The address that throttling counts a request by. */
  addressOf(ctx: Context): string;
  readonly records: Records;
  readonly hash: KeyedHash;
  /** Who holds idempotency keys; absent: a request that died holds its key for 30 s. */
  readonly keys?: KeyOwner;
  readonly positions: PositionGate;
  /** Called with the error where an answer could not be kept for its idempotency key; the caller gets the answer. */
  onUnkept(error: unknown, requestId: string): void;
}

const NOTHING: Readonly<Record<string, unknown>> = Object.freeze({});
const NO_NAMES: readonly string[] = Object.freeze([]);
const NO_BYTES = Buffer.alloc(0);
const ANONYMOUS: Principal = { kind: 'anonymous' };

/** A class, so that all requests have one shape: it is made and read for every one. Fields are set step by step. */
export class Exchange implements Call {
  readonly ctx: Context;
  readonly requestId: string;
  readonly path: string;
  readonly rawQuery: string;
  params: Call['params'];
  principal: Principal = ANONYMOUS;
  commandId = '';
  bodyHash?: string;
  firstPosition?: Position;
  query: Call['query'] = NOTHING;
  body: Call['body'] = NOTHING;
  embeds: readonly string[] = NO_NAMES;
  bytes: Buffer = NO_BYTES;
  /** The idempotency key as it was sent. */
  key: string | undefined = undefined;
  /** What the caller wants to see of the log. */
  position: Position | undefined = undefined;
  /** The body, parsed and not yet validated; `undefined`: none was sent. */
  sent: unknown = undefined;
  /** The idempotency key is this request's, until it is settled or released. */
  held: HeldKey | undefined = undefined;
  handler: Handler | undefined = undefined;
  answer: Answer | undefined = undefined;
  /** An earlier answer has been sent again: nothing is left to do. */
  replayed = false;
  readonly #addressOf: PipelineDeps['addressOf'];
  #left: AbortSignal | undefined;

  constructor(ctx: Context, params: Call['params'], addressOf: PipelineDeps['addressOf']) {
    this.ctx = ctx;
    this.requestId = (ctx.state as RequestState).requestId;
    this.path = ctx.path;
    this.rawQuery = ctx.querystring;
    this.params = params;
    this.#addressOf = addressOf;
  }

  get left(): AbortSignal {
    return (this.#left ??= callerLeft(this.ctx.res));
  }

  get address(): string {
    return this.#addressOf(this.ctx);
  }

  preferredType(types: readonly string[]): string | undefined {
    const type = this.ctx.accepts([...types]);
    return typeof type === 'string' ? type : undefined;
  }

  /** Bound: handlers take it out of the call. */
  readonly header = (name: string): string | undefined => {
    const value = this.ctx.headers[name];
    return Array.isArray(value) ? value.join(',') : value;
  };
}
