/** One request on its way through the steps. */
import type { Context } from 'koa';
import type { Shortcodes } from '../../domain/giftIds.js';
import type { KeyedHash } from '../../domain/keyedHash.js';
import type { Position } from '../../ports/eventStore.js';
import type { Records } from '../../ports/readStore.js';
import type { Principal } from './principal.js';
import type { Limits } from './limitedRequest.js';
import { callerLeft } from './callerLeft.js';
import type { HeldKey, KeyOwner } from './idempotency.js';
import type { PositionGate } from './positions.js';
import type { RequestState } from './requestState.js';
import type { Answer, Call, Handler, RouteCaller } from './route.js';

export interface PipelineDeps {
  recognise(authorization: string | undefined, need: RouteCaller): Principal | undefined;
  /** @throws HttpError 401, 403; UnavailableError */
  authenticate(authorization: string | undefined, need: RouteCaller): Promise<Principal>;
  addressOf(ctx: Context): string;
  readonly records: Records;
  readonly hash: KeyedHash;
  readonly shortcodes: Shortcodes;
  /** Holders of idempotency keys; absent: a request that died holds its key for 30 s. */
  readonly keys?: KeyOwner;
  readonly positions: PositionGate;
  /** Request limits; absent: there are none. */
  readonly limits?: Limits;
  /** Whether outward work is held; absent: it never is. */
  readonly outwardHeld?: () => boolean;
  /** Called with the operation when a gift was refused because it would have gone to a staff account. */
  readonly onStaffRefused?: ((operation: string) => void) | undefined;
  /** Called when an answer could not be stored for its idempotency key; the caller gets the answer all the same. */
  onUnstored(error: unknown, requestId: string): void;
}

const NOTHING: Readonly<Record<string, unknown>> = Object.freeze({});
const NO_NAMES: readonly string[] = Object.freeze([]);
const NO_BYTES = Buffer.alloc(0);
const ANONYMOUS: Principal = { kind: 'anonymous' };

/**
 * State of one request in the pipeline. It is a class because every request creates one, and all should have one shape.
 */
export class Exchange implements Call {
  readonly ctx: Context;
  readonly requestId: string;
  readonly rawQuery: string;
  params: Call['params'];
  byShortcode = false;
  principal: Principal = ANONYMOUS;
  commandId = '';
  bodyHash?: string;
  firstPosition?: Position;
  repeats = false;
  query: Call['query'] = NOTHING;
  body: Call['body'] = NOTHING;
  embeds: readonly string[] = NO_NAMES;
  bytes: Buffer = NO_BYTES;
  key: string | undefined = undefined;
  /** Log position that the caller sent in `Gift-Position`. */
  position: Position | undefined = undefined;
  /** Parsed body, not validated; `undefined` without a body. */
  sent: unknown = undefined;
  /** Idempotency key that this request holds until it is settled or released. */
  held: HeldKey | undefined = undefined;
  handler: Handler | undefined = undefined;
  answer: Answer | undefined = undefined;
  /** Whether an earlier answer was sent again. */
  replayed = false;
  readonly #addressOf: PipelineDeps['addressOf'];
  #left: AbortSignal | undefined;

  constructor(ctx: Context, params: Call['params'], addressOf: PipelineDeps['addressOf']) {
    this.ctx = ctx;
    this.requestId = (ctx.state as RequestState).requestId;
    this.rawQuery = ctx.querystring;
    this.params = params;
    this.#addressOf = addressOf;
  }

  get path(): string {
    return this.ctx.path;
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

  /** An arrow function, so that it stays bound where handlers destructure the call. */
  readonly header = (name: string): string | undefined => {
    const value = this.ctx.req.headers[name];
    return Array.isArray(value) ? value.join(',') : value;
  };
}
